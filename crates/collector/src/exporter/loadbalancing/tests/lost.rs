//! Lost data is counted with its reason, and logged.

use super::*;

fn may_wait(prepared: &mut PreparedBalancer) {
    prepared.queue = Some(queue(3));
    prepared.timeout = Some(10 * SECOND);
}

impl Fixture {
    fn send_failed(&self) -> u64 {
        self.balancer.unassigned_stats.send_failed.load(Ordering::Relaxed)
    }
}

/// The log lines about losses, which all have to name the exporter and the pipeline.
fn losses(log: &Log) -> Vec<String> {
    let lines = log.lines().into_iter().filter(|line| line.contains("dropped data"));
    let lines: Vec<String> = lines.map(|line| line.replace('"', "")).collect();
    let named = |line: &String| line.contains("exporter=load_balancing") && line.contains("pipeline=traces");
    assert!(lines.iter().all(named), "{lines:?}");
    lines
}

#[tokio::test(start_paused = true)]
async fn what_waited_too_long_for_a_peer_is_counted_and_said() {
    let log = Log::begin();
    let fixture = fixture(&three(), |_| {}, may_wait);
    fixture.list(&[]);
    fixture.put(0..10).await;
    tokio::time::sleep(5 * SECOND).await;
    fixture.put(10..20).await;
    tokio::time::sleep(6 * SECOND).await;
    assert_eq!((fixture.dropped(DropReason::RetriesExhausted), fixture.send_failed()), (10, 10));
    assert_eq!(fixture.dropped(DropReason::QueueFull), 0, "there was room for two more");
    let said = losses(&log);
    assert!(
        matches!(&*said, [line] if line.contains("items=10") && line.contains("reason=retries_exhausted")),
        "{said:?}"
    );
    fixture.list(&["a"]);
    let_run().await;
    assert_eq!(fixture.all(), numbers(10..20));
}

#[tokio::test(start_paused = true)]
async fn what_waited_too_long_for_room_is_lost_for_want_of_it() {
    let log = Log::begin();
    let scripts = three();
    scripts.iter().for_each(|(_, script)| script.always(Reply::Hang));
    let fixture = fixture(&scripts, |peers| peers.queue = Some(queue(2)), may_wait);
    for n in 0..3 {
        fixture.put(n * 30..n * 30 + 30).await;
    }
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!((fixture.dropped(DropReason::QueueFull), fixture.send_failed()), (30, 30));
    assert!(matches!(&*losses(&log), [line] if line.contains("reason=queue_full")));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_peer_at_the_end_is_counted_and_said_before_it_is_over() {
    let log = Log::begin();
    let fixture = fixture(&three(), |_| {}, |prepared| prepared.queue = Some(queue(3)));
    fixture.list(&[]);
    for first in [0, 10, 20] {
        fixture.put(first..first + 10).await;
    }
    fixture.balancer.drain(Instant::now() + SECOND).await;
    assert_eq!((fixture.dropped(DropReason::Shutdown), fixture.send_failed()), (30, 30));
    let said = losses(&log);
    assert!(said.len() == 3 && said.iter().all(|line| line.contains("reason=shutdown")), "{said:?}");
}

/// On several threads, as a search for another peer must not be faster than the shutdown of the queues.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_that_dead_peers_hold_at_the_end_is_lost_for_the_same_reason() {
    for _ in 0..50 {
        let scripts = three();
        scripts.iter().for_each(|(_, script)| script.always(Reply::NotNow(None)));
        let fixture = fixture(&scripts, |_| {}, |_| {});
        for n in 0..10 {
            fixture.put(n * 30..n * 30 + 30).await;
        }
        fixture.balancer.drain(Instant::now()).await;
        assert_eq!(fixture.dropped(DropReason::Shutdown), 300);
    }
}

#[tokio::test(start_paused = true)]
async fn the_part_of_a_request_that_nobody_repeats_is_said_to_be_lost() {
    let log = Log::begin();
    let scripts = three();
    scripts[2].1.always(Reply::Never);
    let fixture = fixture(&scripts, |peers| peers.queue = None, |_| {});
    fixture.offer(0..300).wait().await.unwrap();
    let lost = fixture.dropped(DropReason::Refused);
    assert!(matches!(&*losses(&log), [line] if line.contains(&format!("items={lost}"))));
}
