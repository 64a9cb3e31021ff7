"""What commands print: tables and sentences. Pure."""
