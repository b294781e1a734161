"""librdkafka (through confluent-kafka) against a server; scenario.ts says how a suite is run and what it prints."""

import os
import sys
import time
import traceback

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

ADDRESS = sys.argv[1]
UNIQUE = f"{os.getpid():x}{int(time.time() * 1000):x}"
BASE = {"bootstrap.servers": ADDRESS, "client.id": "compat-librdkafka", "log_level": 0,
        "reconnect.backoff.max.ms": 500}
COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]

failures = 0
admin = AdminClient(BASE)


def scenario(name):
    def run(perform):
        global failures
        try:
            perform()
            print(f"ok {name}", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the scenario's result
            failures += 1
            if "COMPAT_STACK" in os.environ:
                traceback.print_exc()
            said = " ⏎ ".join(f"{type(error).__name__}: {error}".splitlines())[:1500]
            print(f"failed {name}: {said}", flush=True)

    return run


def restart_server():
    global admin
    print("restart", flush=True)
    if sys.stdin.readline() == "":
        raise RuntimeError("nobody answers the request for a restart")
    # An admin client that lived through the restart of a Kafka leaves a request to the coordinator unanswered.
    admin = AdminClient(BASE)


def until(what, holds, limit=30.0, meanwhile=lambda: time.sleep(0.02)):
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {limit} s")
        meanwhile()


def same(actual, expected, what):
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r} and not {expected!r}"[:1200])


def topic(name, partitions):
    full = f"librdkafka-{name}-{UNIQUE}"
    admin.create_topics([NewTopic(full, num_partitions=partitions, replication_factor=1)])[full].result(20)
    return full


def every_shape():
    any_bytes = bytes(range(256))
    values = [b"a value", b"", None, any_bytes, "ñandú — 記録".encode(), b"x" * 5000]
    records = []
    for i in range(60):
        key = None if i % 4 == 3 else b"" if i % 4 == 2 else f"key-{i}".encode()
        headers = [("trace", f"t-{i}".encode()), ("bytes", any_bytes), ("empty", b""), ("null", None), ("trace", b"again")]
        records.append((key, values[i % 6], None if i % 3 == 0 else headers))
    return records


def producer(**settings):
    return Producer({**BASE, "acks": "all", **settings})


def send(client, name, records, partition=0):
    reports = []
    for key, value, headers in records:
        client.produce(
            name, value=value, key=key, headers=headers, partition=partition,
            on_delivery=lambda error, message: reports.append((error, message)),
        )
    client.flush(30)
    for error, _ in reports:
        if error is not None:
            raise KafkaException(error)
    same(len(reports), len(records), "delivery reports")
    return [message.offset() for _, message in reports]


def read(name, count):
    consumer = Consumer({**BASE, "group.id": f"{name}-reader", "enable.auto.commit": False, "fetch.wait.max.ms": 100,
                         "check.crcs": True})
    consumer.assign([TopicPartition(name, 0, 0)])
    messages = []

    def poll():
        message = consumer.poll(1)
        if message is not None:
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)

    try:
        until(f"{count} messages of {name}", lambda: len(messages) >= count, meanwhile=poll)
    finally:
        consumer.close()
    return messages


def every_compression(compression):
    @scenario(f"records of every shape, {compression}")
    def _():
        name = topic(compression, 1)
        records = every_shape()
        offsets = send(producer(**{"compression.type": compression, "linger.ms": 50}), name, records)
        same(offsets, list(range(60)), "offsets")
        came = [(message.key(), message.value(), message.headers()) for message in read(name, 60)]
        for i, (one, other) in enumerate(zip(came, records)):
            same(one, other, f"record {i}")


for each in COMPRESSIONS:
    every_compression(each)


@scenario("records of 1 MB")
def _():
    name = topic("large", 1)
    values = [os.urandom(999_000) for _ in range(3)]
    client = producer(**{"message.max.bytes": 2_000_000})
    send(client, name, [(None, value, None) for value in values])
    try:
        send(client, name, [(None, os.urandom(1_100_000), None)])
        raise AssertionError("a record above max.message.bytes was taken")
    except KafkaException as error:
        same(error.args[0].code(), KafkaError.MSG_SIZE_TOO_LARGE, "error of a record that is too large")
    same([message.value() for message in read(name, 3)] == values, True, "records came back the same")


@scenario("a topic made by its first record")
def _():
    name = f"librdkafka-auto-{UNIQUE}"
    send(producer(), name, [(b"k", b"first", None)], partition=-1)
    found = admin.list_topics(name, timeout=10).topics[name]
    same(found.error, None, "topic error")


@scenario("admin")
def _():
    name = f"librdkafka-admin-{UNIQUE}"
    wanted = NewTopic(name, num_partitions=2, replication_factor=1, config={"retention.ms": "3600000"})
    admin.create_topics([wanted])[name].result(20)
    try:
        admin.create_topics([wanted])[name].result(20)
        raise AssertionError("a topic was made twice")
    except KafkaException as error:
        same(error.args[0].code(), KafkaError.TOPIC_ALREADY_EXISTS, "error of a topic made twice")
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = admin.describe_configs([resource])[resource].result(20)
    same((entries["retention.ms"].value, entries["retention.ms"].is_default), ("3600000", False), "retention.ms")
    same(entries["cleanup.policy"].value, "delete", "cleanup.policy")
    change = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
    altered = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    admin.incremental_alter_configs([altered])[altered].result(20)
    until("the altered value is described",
          lambda: admin.describe_configs([resource])[resource].result(20)["retention.ms"].value == "7200000")
    admin.create_partitions([NewPartitions(name, 5)])[name].result(20)
    until("five partitions", lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 5)
    send(producer(), name, [(None, str(i).encode(), None) for i in range(10)])
    partition = TopicPartition(name, 0, 4)
    same(admin.delete_records([partition])[partition].result(20).low_watermark, 4, "low watermark")
    ends = {spec: admin.list_offsets({TopicPartition(name, 0): kind}) for spec, kind in
            (("earliest", OffsetSpec.earliest()), ("latest", OffsetSpec.latest()))}
    same({spec: [f.result(20).offset for f in held.values()] for spec, held in ends.items()},
         {"earliest": [4], "latest": [10]}, "offsets")
    cluster = admin.describe_cluster().result(20)
    same(len(cluster.nodes), 1, "nodes")
    admin.delete_topics([name])[name].result(20)
    until("the topic has gone", lambda: name not in admin.list_topics(timeout=10).topics)


class Member:
    """A member of a group that remembers what it owns and what it was given."""

    def __init__(self, group, name, **settings):
        self.values = []
        self.consumer = Consumer({
            **BASE, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "session.timeout.ms": 10_000, "heartbeat.interval.ms": 300, "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 500, **settings,
        })
        self.consumer.subscribe([name])

    def owned(self):
        return len(self.consumer.assignment())

    def poll(self):
        for message in self.consumer.consume(500, 0.05):
            if message.error() is None:
                self.values.append(message.value().decode())


def group_scenario(strategy):
    @scenario(f"group of two, rebalance, commit, restart, reading on, {strategy}")
    def _():
        name = topic(f"group-{strategy}", 4)
        group = f"librdkafka-group-{strategy}-{UNIQUE}"
        settings = {"partition.assignment.strategy": strategy}
        client = producer()
        sent = 0

        def more(count):
            nonlocal sent
            for i in range(sent, sent + count):
                client.produce(name, value=str(i), partition=i % 4)
            same(client.flush(30), 0, "records that could not be sent")
            sent += count

        first = Member(group, name, **settings)
        members = [first]

        def poll():
            for member in members:
                member.poll()

        def distinct():
            return len({value for member in (first, second) for value in member.values})

        second = first
        more(400)
        until("the first member owns all", lambda: first.owned() == 4 and distinct() == 400, meanwhile=poll)
        second = Member(group, name, **settings)
        members.append(second)
        until("two members share", lambda: first.owned() == second.owned() == 2, meanwhile=poll)
        described = admin.describe_consumer_groups([group])[group].result(20)
        same((described.state.name, len(described.members)), ("STABLE", 2), "described")
        more(400)
        until("two members read all", lambda: distinct() == 800, meanwhile=poll)
        same(len(second.values) > 0, True, "the second member was given records")
        for member in members:
            member.consumer.commit(asynchronous=False)
        members.remove(second)
        second.consumer.close()
        until("the first member owns all again", lambda: first.owned() == 4, meanwhile=poll)

        if strategy == "range":
            restart_server()
        more(200)
        until("the first member reads on", lambda: distinct() == 1000, meanwhile=poll)
        first.consumer.commit(asynchronous=False)
        first.consumer.close()
        committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(20)
        same(sum(partition.offset for partition in committed.topic_partitions), 1000, "committed")

        third = Member(group, name, **settings)
        members[:] = [third]
        until("the third member owns all", lambda: third.owned() == 4, meanwhile=poll)
        more(50)
        until("the third member reads on", lambda: len(third.values) >= 50, meanwhile=poll)
        third.consumer.commit(asynchronous=False)
        third.consumer.close()
        same(sorted(int(value) for value in third.values), list(range(1000, 1050)), "read by the third member")
        listed = {one.group_id for one in admin.list_consumer_groups().result(20).valid}
        same(group in listed, True, "the group is listed")
        admin.delete_consumer_groups([group])[group].result(20)
        listed = {one.group_id for one in admin.list_consumer_groups().result(20).valid}
        same(group in listed, False, "the group is listed after it was deleted")


group_scenario("range")
group_scenario("cooperative-sticky")


@scenario("idempotent producer over a restart")
def _():
    name = topic("idempotent", 1)
    client = producer(**{"enable.idempotence": True, "linger.ms": 2, "batch.num.messages": 10,
                         "reconnect.backoff.max.ms": 500, "retry.backoff.ms": 50})
    errors = []
    acked = 0

    def report(error, _):
        nonlocal acked
        acked += 1
        if error is not None:
            errors.append(error)

    sent = 0

    def send_for(seconds):
        nonlocal sent
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Five requests are always under way: some are cut off in the middle by the restart.
            if len(client) < 200:
                client.produce(name, value=str(sent), partition=0, on_delivery=report)
                sent += 1
            client.poll(0 if len(client) < 200 else 0.01)

    send_for(0.5)
    restart_server()
    send_for(0.5)
    same(client.flush(30), 0, "records that could not be sent")
    same(errors, [], "errors")
    same(acked, sent, "acknowledged")
    same([int(message.value()) for message in read(name, sent)], list(range(sent)), "the log")


sys.exit(1 if failures else 0)
