"""Pictures: tables in, figures out."""
