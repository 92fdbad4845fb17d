//! Peers with scripted responses, on a paused clock.

mod lost;
#[cfg(feature = "extension-health-check")]
mod missing;
mod model;
mod receipts;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    time::Duration,
};

use kubewake_config::model::{DnsResolver, PeerResolver, QueueConfig, RetryConfig, RoutingKey};
use kubewake_otlp::Signal;

use super::{dialer::PeerDialer, *};
use crate::core::{
    MoveReason, Refusal,
    testing::{Destination as Script, Log, Reply, request, settle as let_run},
};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Peers {
    scripts: BTreeMap<String, Arc<Script>>,
    queue: Option<QueueConfig>,
    retry: Option<RetryConfig>,
    timeout: Option<Duration>,
    /// Peers that accept connections.
    there: Mutex<BTreeSet<String>>,
}

impl PeerDialer for Peers {
    fn build_exporter(&self, endpoint: &str) -> Result<ExporterParts, BuildError> {
        let exporter = self.scripts.get(endpoint).cloned().ok_or_else(|| BuildError("unknown".into()))?;
        let destination = DestinationLabels { address: endpoint.into(), ..DestinationLabels::default() };
        let timeout = self.timeout;
        let retry = self.retry.clone();
        let queue = self.queue.clone();
        Ok(ExporterParts { exporter, timeout, retry, queue, destination })
    }

    fn probe<'a>(&'a self, endpoint: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move { self.there.lock().contains(endpoint) })
    }
}

struct Fixture {
    balancer: Arc<LoadBalancer>,
    registry: Arc<StatsRegistry>,
    peers: Arc<Peers>,
}

fn retry() -> RetryConfig {
    RetryConfig {
        initial_interval: SECOND,
        randomization_factor: 0.0,
        multiplier: 2.0,
        max_interval: 8 * SECOND,
        max_elapsed_time: Some(60 * SECOND),
    }
}

fn queue(size: u64) -> QueueConfig {
    QueueConfig { num_consumers: 2, queue_size: size, ..QueueConfig::default() }
}

fn prepared(peers: &Arc<Peers>, listed: &[&str]) -> PreparedBalancer {
    PreparedBalancer {
        dialer: peers.clone(),
        resolver: PeerResolver::Static(listed.iter().map(|name| (*name).to_owned()).collect()),
        routing: None,
        timeout: None,
        retry: None,
        queue: None,
        peer_retry: peers.retry.clone(),
    }
}

fn fixture(
    scripts: &[(&str, Arc<Script>)],
    change_peers: impl FnOnce(&mut Peers),
    change: impl FnOnce(&mut PreparedBalancer),
) -> Fixture {
    let scripts: BTreeMap<_, _> = scripts.iter().map(|(name, script)| ((*name).to_owned(), script.clone())).collect();
    let mut peers = Peers { scripts, queue: Some(queue(100)), retry: Some(retry()), ..Peers::default() };
    change_peers(&mut peers);
    let peers = Arc::new(peers);
    let names: Vec<&str> = peers.scripts.keys().map(String::as_str).collect();
    let mut prepared = prepared(&peers, &names);
    change(&mut prepared);
    let registry = Arc::new(StatsRegistry::default());
    let pipeline = PipelineId { signal: Signal::Traces, name: None };
    let balancer = LoadBalancer::start(ComponentId::new("load_balancing"), pipeline, &registry, prepared);
    Fixture { balancer, registry, peers }
}

/// Three peers that accept everything.
fn three() -> Vec<(&'static str, Arc<Script>)> {
    ["a", "b", "c"].map(|name| (name, Script::new([], Reply::Take))).to_vec()
}

impl Fixture {
    fn offer(&self, numbers: impl IntoIterator<Item = u64>) -> ConsumeOutcome {
        self.balancer.clone().consume(request(numbers), OverflowPolicy::Refuse)
    }

    /// Sends data that must be accepted at once.
    async fn put(&self, numbers: impl IntoIterator<Item = u64>) {
        assert!(matches!(self.offer(numbers), ConsumeOutcome::Now(Ok(()))));
        let_run().await;
    }

    fn got(&self, name: &str) -> Vec<u64> {
        self.peers.scripts[name].delivered().into_iter().flatten().collect()
    }

    /// The spans that all peers accepted, in order, with duplicates.
    fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.peers.scripts.keys().flat_map(|name| self.got(name)).collect();
        all.sort_unstable();
        all
    }

    fn list(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        self.balancer.set_peers(ResolverKind::Static, names);
    }

    fn moved(&self, reason: MoveReason) -> u64 {
        self.balancer.stats.moved_for(reason)
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.balancer.progress.dropped_for(reason)
    }

    fn comes_back(&self, name: &str) {
        self.peers.scripts[name].always(Reply::Take);
        self.peers.there.lock().insert(name.to_owned());
    }
}

fn numbers(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

#[tokio::test(start_paused = true)]
async fn every_trace_is_whole_at_one_peer() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    for _ in 0..3 {
        fixture.put(0..300).await;
    }
    let mut seen = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let got = fixture.got(name);
        assert!(got.len() > 200, "a fair part: {}", got.len());
        got.iter().for_each(|number| *seen.entry(*number).or_insert_with(Vec::new) = vec![name; 3]);
        let mut counts = BTreeMap::new();
        got.iter().for_each(|number| *counts.entry(*number).or_insert(0) += 1);
        assert!(counts.values().all(|count| *count == 3), "all of a trace, or none of it");
    }
    assert_eq!(seen.len(), 300);
    assert!(MoveReason::ALL.iter().all(|reason| fixture.moved(*reason) == 0));
    assert_eq!(fixture.balancer.stats.resolver(ResolverKind::Static).backends.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_peer_was_to_get_goes_to_the_others_and_nothing_else_does() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.put(0..300).await;
    let before_a = fixture.got("a");
    let before_b = fixture.got("b");
    fixture.peers.scripts["c"].always(Reply::NotNow(None));
    fixture.put(0..300).await;
    fixture.put(0..300).await;
    let mut all = fixture.all();
    all.dedup();
    assert_eq!(fixture.all().len(), 900, "each three times, and none more often");
    assert_eq!(all, numbers(0..300));
    let of_c = 300 - before_a.len() - before_b.len();
    assert_eq!(fixture.got("c").len(), of_c, "what it took before");
    let twice = |before: &[u64], now: Vec<u64>| before.iter().all(|n| now.iter().filter(|m| *m == n).count() == 3);
    assert!(twice(&before_a, fixture.got("a")) && twice(&before_b, fixture.got("b")), "theirs did not move");
    assert_eq!(fixture.moved(MoveReason::Down), 2 * of_c as u64);
    assert_eq!(fixture.peers.scripts["c"].attempts().len(), 3, "the first, and two without an answer");
}

#[tokio::test(start_paused = true)]
async fn peers_stay_when_nobody_is_listed_until_others_are() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.list(&["a", "b"]);
    fixture.balancer.keep_peers(ResolverKind::Kubernetes, &BTreeSet::new());
    fixture.put(0..300).await;
    assert!(!fixture.got("a").is_empty() && !fixture.got("b").is_empty());
    // One of the peers is really gone.
    fixture.peers.scripts["b"].always(Reply::NotNow(None));
    fixture.balancer.keep_peers(ResolverKind::Kubernetes, &BTreeSet::new());
    fixture.put(300..600).await;
    assert_eq!(fixture.all(), numbers(0..600));
    fixture.list(&["c"]);
    fixture.put(600..900).await;
    assert_eq!(fixture.got("c"), numbers(600..900));
}

#[tokio::test(start_paused = true)]
async fn terminating_endpoints_stay_peers_while_none_is_ready_and_do_not_become_peers() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.list(&["a", "b"]);
    fixture.balancer.keep_peers(ResolverKind::Kubernetes, &BTreeSet::from(["b", "c"]));
    fixture.put(0..300).await;
    assert_eq!(fixture.got("b"), numbers(0..300));
    fixture.balancer.keep_peers(ResolverKind::Kubernetes, &BTreeSet::from(["c"]));
    fixture.put(300..600).await;
    assert_eq!(fixture.got("b"), numbers(0..600));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_again_gets_what_belongs_to_it() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.peers.scripts["c"].always(Reply::NotNow(None));
    fixture.put(0..300).await;
    assert!(fixture.got("c").is_empty());
    tokio::time::sleep(3 * SECOND).await;
    fixture.put(0..300).await;
    assert!(fixture.got("c").is_empty(), "nobody opened");
    fixture.comes_back("c");
    let log = Log::begin();
    tokio::time::sleep(10 * SECOND).await;
    let said = log.lines();
    let named = |line: &String| line.contains("responds again exporter=load_balancing pipeline=traces peer=\"c\"");
    assert!(said.iter().any(named), "{said:?}");
    fixture.put(0..300).await;
    assert!(!fixture.got("c").is_empty());
    assert_eq!(fixture.all().len(), 900);
}

#[tokio::test(start_paused = true)]
async fn a_slow_peer_holds_up_nobody() {
    let scripts = three();
    scripts[1].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |peers| peers.queue = Some(queue(5)), |_| {});
    for _ in 0..20 {
        fixture.put(0..30).await;
    }
    let held = fixture.got("a").len() + fixture.got("c").len();
    assert!(held > 20 * 20 - 30, "the others go on: {held}");
    let full = fixture.moved(MoveReason::Full);
    assert!(full > 0, "its overflow went to the others");
    fixture.peers.scripts["b"].always(Reply::Take);
    let_run().await;
    assert_eq!(fixture.all().len(), 600, "nothing is lost and nothing is there twice");
}

#[tokio::test(start_paused = true)]
async fn without_room_anywhere_a_request_is_refused_as_a_whole() {
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::Hang));
    let fixture = fixture(&scripts, |peers| peers.queue = Some(queue(2)), |_| {});
    fixture.put(0..30).await;
    fixture.put(30..60).await;
    let ConsumeOutcome::Now(Err(refusal)) = fixture.offer(60..90) else { panic!("there is no room") };
    assert!(refusal.is_retryable() && refusal.is_lack_of_room());
    scripts.iter().for_each(|(_, script)| script.always(Reply::Take));
    let_run().await;
    assert_eq!(fixture.all(), numbers(0..60), "nothing of what was refused");
}

#[tokio::test(start_paused = true)]
async fn what_may_wait_for_room_waits() {
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::Hang));
    let fixture = fixture(&scripts, |peers| peers.queue = Some(queue(2)), |prepared| prepared.queue = Some(queue(1)));
    fixture.put(0..30).await;
    fixture.put(30..60).await;
    fixture.put(60..90).await;
    assert!(matches!(fixture.offer(90..120), ConsumeOutcome::Now(Err(_))), "only one may wait");
    scripts.iter().for_each(|(_, script)| script.always(Reply::Take));
    fixture.balancer.drain(Instant::now() + SECOND).await;
    assert_eq!(fixture.all(), numbers(0..90));
}

#[tokio::test(start_paused = true)]
async fn what_may_wait_for_peers_waits_and_shows() {
    let fixture = fixture(&three(), |_| {}, |prepared| prepared.queue = Some(queue(3)));
    fixture.list(&[]);
    for first in [0, 10, 20] {
        fixture.put(first..first + 10).await;
    }
    assert!(
        matches!(fixture.offer(30..40), ConsumeOutcome::Now(Err(no)) if no.is_retryable()),
        "there is room for three"
    );
    let rest = fixture.balancer.unassigned_stats.clone();
    let shown =
        || (rest.queue.size(), rest.queue_capacity.load(Ordering::Relaxed), rest.in_flight.load(Ordering::Relaxed));
    let begun = rest.queue.oldest();
    assert_eq!((shown(), begun), ((3, 3, 3), Some(Instant::now())));
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!((shown(), rest.queue.oldest()), ((3, 3, 3), begun), "however long it takes");
    fixture.list(&["a", "b"]);
    let_run().await;
    assert_eq!(fixture.all(), numbers(0..30));
    assert_eq!((shown(), rest.queue.oldest()), ((0, 3, 0), None));
    fixture.balancer.retire();
    assert_eq!(shown(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn acknowledged_data_waits_for_room_and_for_peers() {
    let fixture = fixture(&three(), |_| {}, |_| {});
    fixture.list(&[]);
    assert!(
        matches!(fixture.offer(0..3), ConsumeOutcome::Now(Err(no)) if no.is_retryable()),
        "a sender is told to come again"
    );
    let waits = tokio::spawn(fixture.balancer.clone().consume(request(0..3), OverflowPolicy::Wait).wait());
    let_run().await;
    assert!(!waits.is_finished());
    fixture.list(&["a"]);
    waits.await.unwrap().unwrap();
    let_run().await;
    assert_eq!(fixture.got("a"), numbers(0..3));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_leaves_gets_what_it_was_to_get() {
    let scripts = three();
    scripts[2].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..300).await;
    fixture.list(&["a", "b"]);
    fixture.put(300..330).await;
    scripts[2].1.always(Reply::Take);
    let_run().await;
    assert!(!fixture.got("c").is_empty() && fixture.got("c").iter().all(|number| *number < 300));
    assert_eq!(fixture.all(), numbers(0..330));
    assert!(fixture.balancer.leaving.lock().is_empty(), "it is forgotten");
    let known = fixture.registry.exporters();
    let sent: u64 = known.iter().map(|(_, stats)| stats.sent.load(Ordering::Relaxed)).sum();
    assert_eq!(sent, 330, "its counts stay");
    assert!(known.iter().all(|((.., to), _)| to.address != "c"), "and its label goes");
}

#[tokio::test(start_paused = true)]
async fn what_a_leaving_peer_does_not_take_goes_to_the_others() {
    let scripts = three();
    scripts[2].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..300).await;
    fixture.put(0..300).await;
    fixture.list(&["a", "b"]);
    scripts[2].1.always(Reply::NotNow(None));
    let_run().await;
    assert!(fixture.got("c").is_empty());
    assert_eq!(fixture.all().len(), 600);
    assert!(fixture.moved(MoveReason::Left) > 0);
}

#[tokio::test(start_paused = true)]
async fn while_no_peer_answers_everything_is_held_and_then_delivered() {
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::NotNow(None)));
    let fixture = fixture(&scripts, |_| {}, |_| {});
    for n in 0..10 {
        fixture.put(n * 30..n * 30 + 30).await;
    }
    assert!(fixture.all().is_empty());
    tokio::time::sleep(20 * SECOND).await;
    fixture.comes_back("b");
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(fixture.all(), numbers(0..300));
    assert_eq!(fixture.got("b").len(), 300);
    assert!(DropReason::ALL.iter().all(|reason| fixture.dropped(*reason) == 0));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_in_time_is_counted() {
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::NotNow(None)));
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..30).await;
    tokio::time::sleep(62 * SECOND).await;
    assert_eq!(fixture.dropped(DropReason::RetriesExhausted), 30);
    assert!(fixture.balancer.all_exporter_queues().iter().all(|outlet| outlet.is_idle()));
}

#[tokio::test(start_paused = true)]
async fn a_lone_peer_that_was_away_with_its_queue_full_goes_on() {
    let script = Script::new([], Reply::NotNow(None));
    let fixture = fixture(&[("a", script)], |peers| peers.queue = Some(queue(3)), |_| {});
    for n in 0..3 {
        fixture.put([n]).await;
    }
    assert!(matches!(fixture.offer([3]), ConsumeOutcome::Now(Err(_))));
    fixture.comes_back("a");
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(fixture.all(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_waits_for_the_result_is_not_asked_to_repeat_what_was_taken() {
    let scripts = three();
    let fixture = fixture(&scripts, |peers| peers.queue = None, |_| {});
    scripts[2].1.always(Reply::Never);
    fixture.offer(0..300).wait().await.unwrap();
    let lost = fixture.dropped(DropReason::Refused);
    assert_eq!(lost + fixture.all().len() as u64, 300);
    assert!(lost > 0);
    scripts.iter().for_each(|(_, script)| script.always(Reply::Never));
    assert!(fixture.offer(0..300).wait().await.is_err(), "nobody took any of it");
}

#[tokio::test(start_paused = true)]
async fn a_live_peer_that_refuses_is_tried_for_its_time_and_then_the_next_if_so_told() {
    let scripts = three();
    let refusing = |peers: &mut Peers| peers.retry = None;
    scripts[0].1.always(Reply::Hang);
    let fixture = fixture(
        &scripts,
        |peers| {
            refusing(peers);
            peers.timeout = Some(SECOND);
        },
        |prepared| prepared.retry = Some(retry()),
    );
    fixture.put(0..300).await;
    assert!(fixture.all().len() < 300);
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(fixture.all(), numbers(0..300), "two attempts without an answer, and then the others");
    assert!(fixture.got("a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_held_is_delivered_also_by_way_of_others() {
    let scripts = three();
    scripts[0].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..300).await;
    let balancer = fixture.balancer.clone();
    let drained = tokio::spawn(async move { balancer.drain(Instant::now() + 20 * SECOND).await });
    let_run().await;
    assert!(!drained.is_finished());
    scripts[0].1.always(Reply::NotNow(None));
    drained.await.unwrap();
    assert_eq!(fixture.all(), numbers(0..300));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_when_the_time_is_over_is_counted() {
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::Hang));
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..30).await;
    fixture.balancer.drain(Instant::now() + SECOND).await;
    assert_eq!(fixture.dropped(DropReason::Shutdown), 30);
}

#[tokio::test(start_paused = true)]
async fn new_settings_keep_the_peers_that_stay_with_what_they_hold() {
    let scripts = three();
    scripts[0].1.always(Reply::Hang);
    let fixture = fixture(&scripts, |_| {}, |_| {});
    fixture.put(0..30).await;
    let before = fixture.balancer.ring.load().peers[0].clone();
    let mut new = prepared(&fixture.peers, &["a", "b"]);
    new.routing = Some(RoutingKey::Service);
    fixture.balancer.reconfigure(new);
    assert!(Arc::ptr_eq(&before, &fixture.balancer.ring.load().peers[0]));
    scripts[0].1.always(Reply::Take);
    let_run().await;
    assert_eq!(fixture.all(), numbers(0..30));
    fixture.put(30..60).await;
    let holders = ["a", "b"].map(|name| fixture.got(name).iter().filter(|number| **number >= 30).count());
    assert!(holders.contains(&30), "one service stays together: {holders:?}");
}

/// A resolver that looks up a name again and again.
fn by_name(prepared: &mut PreparedBalancer) {
    let hostname = "localhost".to_owned();
    let interval = 3600 * SECOND;
    let timeout = SECOND;
    prepared.resolver = PeerResolver::Dns(DnsResolver { hostname, port: 1, interval, timeout });
}

impl Fixture {
    fn is_resolving(&self) -> bool {
        self.balancer.resolving.lock().is_some()
    }

    fn find(&self, names: &[&str]) {
        self.balancer.set_peers(ResolverKind::Dns, names.iter().map(|name| (*name).to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn retired_balancer_stops_resolving_and_delivers_what_it_holds() {
    let hangs = Script::new([Reply::Hang], Reply::Take);
    let f = fixture(&[("a", hangs.clone())], |_| {}, by_name);
    f.find(&["a"]);
    f.put([1, 2]).await;
    assert!(f.is_resolving());
    f.balancer.retire();
    assert!(!f.is_resolving(), "at once, while it still holds something");
    hangs.always(Reply::Take);
    f.balancer.drain(Instant::now() + 10 * SECOND).await;
    assert_eq!(f.got("a"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn retired_balancer_resolves_only_while_what_it_holds_has_no_peer() {
    let f = fixture(
        &[("a", Script::new([], Reply::Take))],
        |_| {},
        |prepared| {
            by_name(prepared);
            prepared.queue = Some(queue(100));
        },
    );
    f.put([1, 2]).await;
    f.balancer.retire();
    assert!(f.is_resolving());
    f.find(&["a"]);
    assert!(!f.is_resolving());
    f.balancer.drain(Instant::now() + 10 * SECOND).await;
    assert_eq!(f.got("a"), [1, 2]);

    let f = fixture(
        &[],
        |_| {},
        |prepared| {
            by_name(prepared);
            prepared.queue = Some(queue(100));
        },
    );
    f.put([1]).await;
    f.balancer.retire();
    f.balancer.drain(Instant::now() + 10 * SECOND).await;
    assert!(!f.is_resolving(), "it is given up, and counted");
}
