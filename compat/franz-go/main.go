// franz-go against a server; ../scenario.ts says how a suite is run and what it prints.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	address string
	unique  = fmt.Sprintf("%x%x", os.Getpid(), time.Now().UnixMilli())
	failed  bool
	admin   *kadm.Client
)

func scenario(name string, perform func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := perform(ctx); err != nil {
		failed = true
		fmt.Printf("failed %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " ⏎ "))
		return
	}
	fmt.Printf("ok %s\n", name)
}

var stdin = bufio.NewReader(os.Stdin)

func restartServer() error {
	fmt.Println("restart")
	_, err := stdin.ReadString('\n')
	return err
}

func until(what string, holds func() bool) error {
	end := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(end) {
			return fmt.Errorf("%s, not after 30 s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

func client(options ...kgo.Opt) *kgo.Client {
	all := append([]kgo.Opt{
		kgo.SeedBrokers(address),
		kgo.ClientID("compat-franz-go"),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.RecordRetries(1000),
	}, options...)
	made, err := kgo.NewClient(all...)
	if err != nil {
		panic(err)
	}
	return made
}

func topic(ctx context.Context, name string, partitions int32) (string, error) {
	full := fmt.Sprintf("franz-go-%s-%s", name, unique)
	_, err := admin.CreateTopic(ctx, partitions, 1, nil, full)
	return full, err
}

func everyShape() []*kgo.Record {
	anyBytes := make([]byte, 256)
	for i := range anyBytes {
		anyBytes[i] = byte(i)
	}
	values := [][]byte{[]byte("a value"), {}, nil, anyBytes, []byte("ñandú — 記録"), bytes.Repeat([]byte("x"), 5000)}
	var records []*kgo.Record
	for i := range 60 {
		record := &kgo.Record{Value: values[i%len(values)], Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i))}
		switch i % 4 {
		case 2:
			record.Key = []byte{}
		case 0, 1:
			record.Key = []byte(fmt.Sprint("key-", i))
		}
		if i%3 != 0 {
			record.Headers = []kgo.RecordHeader{
				{Key: "trace", Value: []byte(fmt.Sprint("t-", i))}, {Key: "bytes", Value: anyBytes},
				{Key: "empty", Value: []byte{}}, {Key: "null"}, {Key: "trace", Value: []byte("again")},
			}
		}
		records = append(records, record)
	}
	return records
}

// Bytes with null and empty told apart.
func shown(value []byte) string {
	if value == nil {
		return "null"
	}
	return strconv.Quote(string(value))
}

func describe(r *kgo.Record) string {
	text := shown(r.Key) + " " + shown(r.Value) + " " + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
	for _, header := range r.Headers {
		text += " " + header.Key + "=" + shown(header.Value)
	}
	return text
}

func read(ctx context.Context, name string, count int) ([]*kgo.Record, error) {
	reader := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().AtStart()}}))
	defer reader.Close()
	var records []*kgo.Record
	for len(records) < count {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading %s, %d of %d came: %w", name, len(records), count, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}

func everyCompression() {
	codecs := []struct {
		name  string
		codec kgo.CompressionCodec
	}{
		{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()},
		{"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()},
	}
	for _, each := range codecs {
		scenario("records of every shape, "+each.name, func(ctx context.Context) error {
			name, err := topic(ctx, each.name, 1)
			if err != nil {
				return err
			}
			producer := client(kgo.ProducerBatchCompression(each.codec), kgo.DefaultProduceTopic(name), kgo.ProducerLinger(50*time.Millisecond))
			defer producer.Close()
			if err := producer.ProduceSync(ctx, everyShape()...).FirstErr(); err != nil {
				return err
			}
			came, err := read(ctx, name, 60)
			if err != nil {
				return err
			}
			for i, record := range everyShape() {
				if describe(came[i]) != describe(record) || came[i].Offset != int64(i) {
					return fmt.Errorf("record %d at %d is %s and not %s", i, came[i].Offset, describe(came[i]), describe(record))
				}
			}
			return nil
		})
	}
}

func large(ctx context.Context) error {
	name, err := topic(ctx, "large", 1)
	if err != nil {
		return err
	}
	producer := client(kgo.DefaultProduceTopic(name), kgo.ProducerBatchMaxBytes(2_000_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer producer.Close()
	var values [][]byte
	for range 3 {
		value := make([]byte, 1_000_000)
		rand.Read(value)
		values = append(values, value)
		if err := producer.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return err
		}
	}
	err = producer.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 1_100_000)}).FirstErr()
	if !errors.Is(err, kerr.MessageTooLarge) {
		return fmt.Errorf("a record above max.message.bytes ended with %v", err)
	}
	came, err := read(ctx, name, 3)
	if err != nil {
		return err
	}
	for i, value := range values {
		if !bytes.Equal(came[i].Value, value) {
			return fmt.Errorf("record %d of 1 MB came back changed", i)
		}
	}
	return nil
}

func automatic(ctx context.Context) error {
	name := "franz-go-auto-" + unique
	producer := client(kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(name))
	defer producer.Close()
	return producer.ProduceSync(ctx, kgo.StringRecord("first")).FirstErr()
}

func administration(ctx context.Context) error {
	name := "franz-go-admin-" + unique
	hour := "3600000"
	created, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &hour}, name)
	if err != nil {
		return err
	}
	if created.NumPartitions != 2 || created.ReplicationFactor != 1 || *created.Configs["retention.ms"].Value != hour {
		return fmt.Errorf("created: %+v", created)
	}
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, name); !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("a topic made twice ended with %v", err)
	}
	two := "7200000"
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &two}}, name)
	if err = errors.Join(err, altered[0].Err); err != nil {
		return err
	}
	// What is altered is described as soon as the broker has read of it, which on Kafka can be after the answer.
	described := func() bool {
		configs, err := admin.DescribeTopicConfigs(ctx, name)
		return err == nil && slices.ContainsFunc(configs[0].Configs, func(config kadm.Config) bool {
			return config.Key == "retention.ms" && config.MaybeValue() == two && config.Source.String() == "DYNAMIC_TOPIC_CONFIG"
		})
	}
	if err := until("the altered value is described", described); err != nil {
		return err
	}
	grown, err := admin.UpdatePartitions(ctx, 5, name)
	if err = errors.Join(err, grown.Error()); err != nil {
		return err
	}
	producer := client(kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	for partition := range int32(5) {
		for range 10 {
			record := &kgo.Record{Partition: partition, Value: []byte("v")}
			if err := producer.ProduceSync(ctx, record).FirstErr(); err != nil {
				return fmt.Errorf("producing to partition %d: %w", partition, err)
			}
		}
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset(name, 0, 4, -1)
	deleted, err := admin.DeleteRecords(ctx, offsets)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return err
	}
	starts, err := admin.ListStartOffsets(ctx, name)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, name)
	if err != nil {
		return err
	}
	if start, end := starts[name][0].Offset, ends[name][0].Offset; start != 4 || end != 10 {
		return fmt.Errorf("offsets are %d to %d and not 4 to 10", start, end)
	}
	_, err = admin.DescribeAllLogDirs(ctx, kadm.TopicsSet{name: {0: {}}})
	if err != nil {
		return err
	}
	metadata, err := admin.Metadata(ctx, name)
	if err != nil || len(metadata.Brokers) != 1 || len(metadata.Topics[name].Partitions) != 5 {
		return fmt.Errorf("metadata: %+v %w", metadata, err)
	}
	gone, err := admin.DeleteTopics(ctx, name)
	if err = errors.Join(err, gone.Error()); err != nil {
		return err
	}
	topics, err := admin.ListTopics(ctx)
	if err == nil && topics.Has(name) {
		err = errors.New("the topic is listed after it was deleted")
	}
	return err
}

// A member of a group that remembers what it owns and what it was given.
type member struct {
	client *kgo.Client
	owned  atomic.Int32
	lock   sync.Mutex
	values []int
	done   chan struct{}
}

func join(group, name string) *member {
	m := &member{done: make(chan struct{})}
	count := func(sign int32) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			for _, partitions := range topics {
				m.owned.Add(sign * int32(len(partitions)))
			}
		}
	}
	m.client = client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)), kgo.OnPartitionsLost(count(-1)),
		kgo.AutoCommitInterval(200*time.Millisecond), kgo.AutoCommitMarks(),
	)
	go func() {
		defer close(m.done)
		for {
			fetches := m.client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			m.lock.Lock()
			fetches.EachRecord(func(r *kgo.Record) {
				value, _ := strconv.Atoi(string(r.Value))
				m.values = append(m.values, value)
			})
			m.lock.Unlock()
			m.client.MarkCommitRecords(fetches.Records()...)
		}
	}()
	return m
}

func (m *member) leave(ctx context.Context) error {
	err := m.client.CommitMarkedOffsets(ctx)
	m.client.Close()
	<-m.done
	return err
}

func (m *member) read() []int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Clone(m.values)
}

func group(ctx context.Context) error {
	name, err := topic(ctx, "group", 4)
	if err != nil {
		return err
	}
	id := "franz-go-group-" + unique
	producer := client(kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	sent := 0
	more := func(count int) error {
		var records []*kgo.Record
		for range count {
			records = append(records, &kgo.Record{Partition: int32(sent % 4), Value: []byte(strconv.Itoa(sent))})
			sent++
		}
		return producer.ProduceSync(ctx, records...).FirstErr()
	}
	var second *member
	first := join(id, name)
	distinct := func() int {
		seen := map[int]bool{}
		for _, m := range []*member{first, second} {
			if m != nil {
				for _, value := range m.read() {
					seen[value] = true
				}
			}
		}
		return len(seen)
	}
	if err := more(400); err != nil {
		return err
	}
	if err := until("the first member owns all", func() bool { return first.owned.Load() == 4 && distinct() == 400 }); err != nil {
		return err
	}
	second = join(id, name)
	if err := until("two members share", func() bool { return first.owned.Load() == 2 && second.owned.Load() == 2 }); err != nil {
		return err
	}
	described, err := admin.DescribeGroups(ctx, id)
	if err = errors.Join(err, described.Error()); err != nil {
		return err
	}
	if state, members := described[id].State, len(described[id].Members); state != "Stable" || members != 2 {
		return fmt.Errorf("described as %s with %d members", state, members)
	}
	if err := more(400); err != nil {
		return err
	}
	if err := until("two members read all", func() bool { return distinct() == 800 && len(second.read()) > 0 }); err != nil {
		return err
	}
	if err := second.leave(ctx); err != nil {
		return err
	}
	if err := until("the first member owns all again", func() bool { return first.owned.Load() == 4 }); err != nil {
		return err
	}
	if err := restartServer(); err != nil {
		return err
	}
	if err := more(200); err != nil {
		return err
	}
	if err := until("the first member reads on", func() bool { return distinct() == 1000 }); err != nil {
		return err
	}
	if err := first.leave(ctx); err != nil {
		return err
	}
	committed, err := admin.FetchOffsets(ctx, id)
	if err != nil {
		return err
	}
	sum := int64(0)
	committed.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if sum != 1000 {
		return fmt.Errorf("committed %d and not 1000", sum)
	}
	third := join(id, name)
	if err := until("the third member owns all", func() bool { return third.owned.Load() == 4 }); err != nil {
		return err
	}
	if err := more(50); err != nil {
		return err
	}
	if err := until("the third member reads on", func() bool { return len(third.read()) >= 50 }); err != nil {
		return err
	}
	if err := third.leave(ctx); err != nil {
		return err
	}
	came := third.read()
	slices.Sort(came)
	if len(came) != 50 || came[0] != 1000 || came[49] != 1049 {
		return fmt.Errorf("the third member read %v", came)
	}
	deleted, err := admin.DeleteGroups(ctx, id)
	return errors.Join(err, deleted.Error())
}

func idempotent(ctx context.Context) error {
	name, err := topic(ctx, "idempotent", 1)
	if err != nil {
		return err
	}
	producer := client(kgo.DefaultProduceTopic(name), kgo.ProducerLinger(2*time.Millisecond), kgo.MaxBufferedRecords(200))
	defer producer.Close()
	sent := 0
	var failure atomic.Value
	sendFor := func(duration time.Duration) {
		for end := time.Now().Add(duration); time.Now().Before(end); sent++ {
			producer.Produce(ctx, kgo.StringRecord(strconv.Itoa(sent)), func(_ *kgo.Record, err error) {
				if err != nil {
					failure.CompareAndSwap(nil, err)
				}
			})
			if sent%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	sendFor(500 * time.Millisecond)
	restarted := make(chan error, 1)
	go func() { restarted <- restartServer() }()
	sendFor(time.Second)
	if err := <-restarted; err != nil {
		return err
	}
	sendFor(500 * time.Millisecond)
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	if err, is := failure.Load().(error); is {
		return err
	}
	came, err := read(ctx, name, sent)
	if err != nil {
		return err
	}
	for i, record := range came {
		if string(record.Value) != strconv.Itoa(i) {
			return fmt.Errorf("offset %d holds %s", i, record.Value)
		}
	}
	return nil
}

func main() {
	address = os.Args[1]
	admin = kadm.NewClient(client())
	everyCompression()
	scenario("records of 1 MB", large)
	scenario("a topic made by its first record", automatic)
	scenario("admin", administration)
	scenario("group of two, rebalance, commit, restart, reading on", group)
	scenario("idempotent producer over a restart", idempotent)
	if failed {
		os.Exit(1)
	}
}
