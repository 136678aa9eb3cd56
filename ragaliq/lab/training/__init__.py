"""How the embedded judge's parameters are made and measured; nothing at run time imports this."""
