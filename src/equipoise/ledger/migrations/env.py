"""What Alembic runs: migrations on the connection that the caller opened, in its transaction."""

from alembic import context

from equipoise.ledger.schema import metadata

if __name__ == "env_py":  # the name under which Alembic loads this file
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        transactional_ddl=False,  # the caller's transaction holds all of it
    )
    context.run_migrations()
