"""Whether queues of the broker have consumers: exit code 0 when each of them has.

Runs with the Tacker environment's Python. Arguments: host:port of the broker, then the
names of the queues.
"""

import sys

import amqp


def main() -> int:
    """Look once."""
    broker, *queues = sys.argv[1:]
    with amqp.Connection(broker, connect_timeout=5) as connection:
        for queue in queues:
            try:
                found = connection.channel().queue_declare(queue, passive=True)
            except amqp.exceptions.NotFound:
                return 1
            if not found.consumer_count:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
