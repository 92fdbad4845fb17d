//! A tier of peers behind one that spreads traces over them: every trace meets at one peer, whatever happens to
//! the others.

use std::collections::{BTreeMap, BTreeSet};

use kubewake_e2e::{CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, free_address, wait_until};
use kubewake_otlp::Signal;
use serde_json::Value;

/// Requests of twenty spans of four traces, each of which comes in five requests.
const LOAD: [&str; 8] = ["--spans", "20", "--traces", "4", "--spread", "5", "--connections", "2"];

fn document(peers: &[String]) -> String {
    let peers: Vec<String> = peers.iter().map(|peer| format!("\"{peer}\"")).collect();
    let settings = format!(
        "{{protocol: {{otlp: {{tls: {{insecure: true}}, compression: none, timeout: 2s, \
         retry_on_failure: {{initial_interval: 50ms, max_interval: 200ms}}}}}}, \
         resolver: {{static: {{hostnames: [{}]}}}}}}",
        peers.join(", ")
    );
    ConfigBuilder::new().exporter("load_balancing", settings).pipeline("traces", "", "load_balancing").to_string()
}

fn address(sink: &SinkProcess) -> String {
    sink.address().to_string()
}

/// The spans of each trace that a sink has.
fn traces(sink: &SinkProcess) -> BTreeMap<String, BTreeSet<String>> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut traces: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for request in sink.received(Signal::Traces) {
        let scopes = list(&request, "resourceSpans").into_iter().flat_map(|entry| list(&entry, "scopeSpans"));
        for span in scopes.flat_map(|scope| list(&scope, "spans")) {
            let text = |key: &str| span[key].as_str().unwrap().to_owned();
            assert!(traces.entry(text("traceId")).or_default().insert(text("spanId")), "a span came twice");
        }
    }
    traces
}

/// Fails if a trace is at two of these peers, except for these.
fn whole(peers: &[&SinkProcess], except: &BTreeSet<String>) -> usize {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, peer) in peers.iter().enumerate() {
        for id in traces(peer).into_keys().filter(|id| !except.contains(id)) {
            let earlier = seen.insert(id.clone(), at);
            assert!(earlier.is_none(), "{id} is at two peers");
        }
    }
    seen.len()
}

#[test]
fn every_trace_is_whole_at_one_peer() {
    let peers = [SinkProcess::start(), SinkProcess::start(), SinkProcess::start()];
    let collector = CollectorProcess::with_config(document(&peers.each_ref().map(address))).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &[&LOAD[..], &["--requests", "200"]].concat());
    assert_eq!(report.items("acknowledged"), 4000);
    wait_until("all items arrive", || peers.iter().map(SinkProcess::items).sum::<u64>() >= 4000);
    assert_eq!(whole(&peers.each_ref(), &BTreeSet::new()), 160);
    for peer in &peers {
        let sizes: BTreeSet<usize> = traces(peer).values().map(BTreeSet::len).collect();
        assert_eq!(sizes, BTreeSet::from([25]), "all of a trace is here");
        assert!(traces(peer).len() > 20, "a fair part");
        assert_eq!(peer.count("duplicates"), 0);
    }
    assert_eq!(collector.metric("otelcol_loadbalancer_num_backends", &["resolver=\"static\""]), 3.0);
    assert!(collector.metric("otelcol_loadbalancer_backend_outcome", &["success=\"true\""]) > 0.0);
    assert_eq!(collector.metric("kubewake_loadbalancer_moved_items", &[]), 0.0);
    let status = collector.status();
    let exporter = &status["pipelines"]["traces"]["exporters"]["load_balancing"];
    assert_eq!(exporter["peers"].as_object().unwrap().len(), 3, "{status}");
}

#[test]
fn a_peer_is_killed_and_only_its_traces_go_elsewhere() {
    let [a, b, killed] = [SinkProcess::start(), SinkProcess::start(), SinkProcess::start()];
    let place = killed.address();
    let peers = [address(&a), address(&b), address(&killed)];
    let collector = CollectorProcess::with_config(document(&peers)).start();
    let send = || {
        let report =
            LoadGenerator::run("grpc", collector.grpc(), &[&LOAD[..], &["--requests", "100", "--retry"]].concat());
        assert_eq!(report.items("acknowledged"), 2000);
        report.acknowledged
    };
    let first = send();
    wait_until("all items arrive", || [&a, &b, &killed].iter().map(|peer| peer.items()).sum::<u64>() >= 2000);
    let of_killed = traces(&killed).len();
    assert!(of_killed > 0);
    drop(killed);
    let second = send();
    // What is not at one is at the other, and nothing is at both.
    wait_until("later data arrives at the other peers", || {
        (a.missing(&second) + b.missing(&second)).saturating_sub(2000) == 0
    });
    assert_eq!((a.count("duplicates"), b.count("duplicates")), (0, 0));
    whole(&[&a, &b], &BTreeSet::new());
    assert!(collector.metric("kubewake_loadbalancer_moved_items", &["reason=\"down\""]) > 0.0);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);

    // It is started again at the same place, and its own come back to it.
    let back = SinkProcess::start_at(place, &[]);
    wait_until("the peer receives its traces again", || {
        send();
        back.items() > 0
    });
    drop(first);
}

#[test]
fn a_peer_comes_and_one_leaves_while_data_flows() {
    let [a, b, c, new] = [SinkProcess::start(), SinkProcess::start(), SinkProcess::start(), SinkProcess::start()];
    let mut peers = vec![address(&a), address(&b), address(&c)];
    let collector = CollectorProcess::with_config(document(&peers)).start();
    let args = [&LOAD[..], &["--seconds", "4", "--rate", "4000", "--retry"]].concat();
    let load = LoadGenerator::start("grpc", collector.grpc(), &args);
    wait_until("data arrives at the first peer", || a.items() > 400);
    peers.push(address(&new));
    collector.reload(document(&peers));
    wait_until("the new peer receives data", || new.items() > 200);
    peers.remove(2);
    collector.reload(document(&peers));
    let report = load.finish();
    let all = [&a, &b, &c, &new];
    let sent = report.items("acknowledged");
    wait_until("all items arrive", || all.iter().map(|peer| peer.items()).sum::<u64>() >= sent);
    assert_eq!(all.iter().map(|peer| peer.items()).sum::<u64>(), sent, "nothing twice, nothing lost");
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    all.iter().for_each(|peer| traces(peer).into_keys().for_each(|id| *at.entry(id).or_default() += 1));
    let split = at.values().filter(|peers| **peers > 1).count();
    assert!(split * 10 < at.len(), "only what was open at a change: {split} of {}", at.len());
}

#[test]
fn peers_are_found_by_name() {
    let peer = SinkProcess::start();
    let settings = format!(
        "{{protocol: {{otlp: {{tls: {{insecure: true}}}}}}, \
         resolver: {{dns: {{hostname: localhost, port: \"{}\", interval: 100ms}}}}}}",
        peer.address().port()
    );
    let config = ConfigBuilder::new().exporter("loadbalancing", settings).pipeline("traces", "", "loadbalancing");
    let collector = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "20", "--retry"]);
    peer.wait_for_all(&report.acknowledged);
    assert!(collector.metric("otelcol_loadbalancer_num_resolutions", &["resolver=\"dns\"", "success=\"true\""]) > 0.0);
}

#[test]
fn a_document_that_cannot_be_meant_is_refused_with_its_place() {
    let bad = |settings: &str| {
        let config = ConfigBuilder::new().exporter("load_balancing", settings).pipeline("traces", "", "load_balancing");
        let output = CollectorProcess::with_config(config).validate();
        assert!(!output.status.success(), "{settings}");
        String::from_utf8(output.stderr).unwrap()
    };
    let protocol = "protocol: {otlp: {tls: {insecure: true}}}";
    let words = bad(&format!("{{{protocol}, resolver: {{static: {{hostnames: []}}}}}}"));
    assert!(words.contains("exporters::load_balancing::resolver::static::hostnames"), "{words}");
    let words = bad(&format!("{{{protocol}, resolver: {{static: {{hostnames: ['a:b:c']}}}}}}"));
    assert!(words.contains("exporters::load_balancing::resolver::static::hostnames::0"), "{words}");
    let words = bad(&format!("{{{protocol}, resolver: {{k8s: {{service: 'a..b'}}}}}}"));
    assert!(words.contains("is not the name of a Service"), "{words}");
    let words = bad(&format!("{{{protocol}, routing_key: metric, resolver: {{static: {{hostnames: [a]}}}}}}"));
    assert!(words.contains("cannot route traces by `metric`"), "{words}");
    let unused = free_address();
    let words = bad(&format!(
        "{{{protocol}, resolver: {{static: {{hostnames: ['{unused}']}}, dns: {{hostname: localhost}}}}}}"
    ));
    assert!(words.contains("one resolver only"), "{words}");
}
