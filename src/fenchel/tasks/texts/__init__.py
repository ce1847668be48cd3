"""Tasks that classify texts: documents, and pairs of a premise and a hypothesis."""
