"""What kafka-sla says about situations that on-call engineers know, told as short stories."""
