"""Those who carry messages to people: one adapter per provider, and what decides when to call it again."""
