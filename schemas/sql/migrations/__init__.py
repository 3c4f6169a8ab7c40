"""Numbered migrations, forward only; an applied file is never edited (see `connectors.postgres.migrate`)."""
