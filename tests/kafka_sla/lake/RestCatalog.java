import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's REST catalog on loopback: the arguments are its port, its SQLite file and a folder for tables. */
public class RestCatalog {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> properties = Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO",
            "jdbc.schema-version", "V1",
            "uri", "jdbc:sqlite:" + arguments[1],
            "warehouse", arguments[2]);
        Catalog catalog = CatalogUtil.buildIcebergCatalog("rest", properties, new Configuration());
        ServletContextHandler paths = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
        paths.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
        Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        server.setHandler(paths);
        server.start();
        server.join();
    }
}
