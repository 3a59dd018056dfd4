"""Who may come in: certificates, passwords, tokens and limits. Knows no page."""
