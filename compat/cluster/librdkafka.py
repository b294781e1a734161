"""librdkafka as a writer or reader of a cluster that is disturbed; its lines are those of Kafka's verifiable tools.

  librdkafka.py produce BOOTSTRAP TOPIC STREAM PER_SECOND REQUEST_TIMEOUT_MS
  librdkafka.py consume BOOTSTRAP TOPIC GROUP
"""

import json
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer

KEYS = 16
stopped = False


def stop(*_):
    global stopped
    stopped = True


def tell(name, **fields):
    print(json.dumps({"name": name, "timestamp": int(time.time() * 1000), **fields}), flush=True)


def produce(bootstrap, topic, stream, per_second, timeout_ms):
    producer = Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 2, "log_level": 0,
        "message.timeout.ms": 120000, "reconnect.backoff.max.ms": 500, "partitioner": "murmur2_random",
        "socket.timeout.ms": timeout_ms,
    })

    def delivered(error, message):
        if error is not None:
            tell("producer_send_error", message=str(error), value=message.value().decode())
        else:
            # Of a repeat that it finds to be written already it knows no offset.
            offset = message.offset()
            tell("producer_send_success", value=message.value().decode(), partition=message.partition(),
                 offset=-1 if offset is None else offset)

    began = time.monotonic()
    sequence = 0
    while not stopped:
        try:
            producer.produce(topic, key=f"key-{sequence % KEYS}", value=f"{stream}.{sequence}", on_delivery=delivered)
            sequence += 1
        except BufferError:
            producer.poll(0.1)
        producer.poll(0)
        ahead = began + sequence / per_second - time.monotonic()
        if ahead > 0.001:
            producer.poll(min(ahead, 0.2))
    producer.flush(60)


def consume(bootstrap, topic, group):
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0,
        "enable.auto.commit": False, "session.timeout.ms": 10000, "reconnect.backoff.max.ms": 500, "check.crcs": True,
    })
    consumer.subscribe([topic])
    while not stopped:
        messages = [message for message in consumer.consume(500, timeout=0.2) if message.error() is None]
        if not messages:
            continue
        for message in messages:
            offset = message.offset()
            tell("records_consumed",
                 partitions=[{"partition": message.partition(), "minOffset": offset, "maxOffset": offset}])
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            tell("commit_failed", message=str(error))
    consumer.close()


signal.signal(signal.SIGTERM, stop)
what, bootstrap, topic, *rest = sys.argv[1:]
if what == "produce":
    produce(bootstrap, topic, rest[0], float(rest[1]), int(rest[2]))
else:
    consume(bootstrap, topic, rest[0])
