use serde_json::json;

use super::*;

const BACKOFF: PodBackoff = PodBackoff { initial: Duration::from_secs(1), max: Duration::from_secs(10) };

fn pod(name: &str, priority: i32, created: u32) -> Arc<Pod> {
    let metadata = json!({
        "name": name, "namespace": "default", "uid": format!("uid-{name}"),
        "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z"),
    });
    Arc::new(
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "containers": [], "priority": priority } }))
            .unwrap(),
    )
}

fn after(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

#[test]
fn the_most_important_comes_first_and_then_the_oldest() {
    let mut queue = SchedulingQueue::default();
    let now = Instant::now();
    for pod in [pod("young", 0, 30), pod("old", 0, 10), pod("vip", 5, 50)] {
        queue.add(pod, now);
    }
    let order: Vec<String> = std::iter::from_fn(|| queue.pop(now)).map(|turn| turn.pod.name_any()).collect();
    assert_eq!(order, ["vip", "old", "young"]);
}

#[test]
fn who_fits_nowhere_is_tried_again_after_a_change_and_its_backoff() {
    let mut queue = SchedulingQueue::default();
    let start = Instant::now();
    let pod = pod("web", 0, 0);
    queue.add(pod.clone(), start);
    assert_eq!(queue.pop(start).unwrap().attempt, 1);
    assert!(queue.mark_unschedulable(&pod, "no room", BACKOFF, start), "the first time it is news");
    assert_eq!(queue.next_due(), Some(start + MAX_UNSCHEDULABLE_DURATION));
    queue.move_all_to_active(start);
    assert!(queue.pop(start).is_none(), "the backoff is not over");
    assert_eq!(queue.next_due(), Some(after(start, 1)));
    let turn = queue.pop(after(start, 1)).unwrap();
    assert_eq!((turn.attempt, turn.waited), (2, Duration::from_secs(1)));
    assert!(!queue.mark_unschedulable(&pod, "no room", BACKOFF, after(start, 1)), "it was told");
    queue.move_all_to_active(after(start, 1));
    assert_eq!(queue.next_due(), Some(after(start, 3)), "twice as long");
    assert!(queue.pop(after(start, 3)).is_some());
    assert!(queue.mark_unschedulable(&pod, "taints", BACKOFF, after(start, 3)), "another reason is news");
    assert!(queue.pop(after(start, 3) + MAX_UNSCHEDULABLE_DURATION).is_some(), "even if nothing changes");
}

#[test]
fn a_pod_is_tried_once_at_a_time_and_at_once_when_it_asks_for_something_else() {
    let mut queue = SchedulingQueue::default();
    let now = Instant::now();
    let first = pod("web", 0, 0);
    queue.add(first.clone(), now);
    queue.pop(now).unwrap();
    queue.add(first.clone(), now);
    assert!(queue.pop(now).is_none());
    queue.mark_unschedulable(&first, "no room", BACKOFF, now);
    queue.add(first, now);
    assert!(queue.pop(now).is_none(), "what others write about it changes nothing");
    queue.add(pod("web", 1, 0), now);
    assert_eq!(queue.pop(now).unwrap().attempt, 2);
}

#[test]
fn a_new_pod_of_the_same_name_begins_anew() {
    let mut queue = SchedulingQueue::default();
    let now = Instant::now();
    let old = pod("web", 0, 0);
    queue.add(old.clone(), now);
    queue.pop(now).unwrap();
    let mut new = (*old).clone();
    new.metadata.uid = Some("other".to_owned());
    queue.add(Arc::new(new), now);
    assert!(!queue.mark_unschedulable(&old, "no room", BACKOFF, now), "nobody waits to hear of the old one");
    assert_eq!(queue.pop(now).unwrap().attempt, 1);
}

#[test]
fn a_failure_is_tried_again_by_itself() {
    let mut queue = SchedulingQueue::default();
    let now = Instant::now();
    let pod = pod("web", 0, 0);
    queue.add(pod.clone(), now);
    queue.pop(now).unwrap();
    queue.mark_failed(&pod, BACKOFF, now);
    queue.move_all_to_active(now);
    assert_eq!(queue.next_due(), Some(after(now, 1)));
    assert_eq!(BACKOFF.delay_after(5), Duration::from_secs(10));
    assert_eq!(BACKOFF.delay_after(u32::MAX), Duration::from_secs(10));
}

#[test]
fn what_nobody_heard_is_told_again() {
    let mut queue = SchedulingQueue::default();
    let now = Instant::now();
    let pod = pod("web", 0, 0);
    queue.add(pod.clone(), now);
    queue.pop(now).unwrap();
    queue.mark_unschedulable(&pod, "no room", BACKOFF, now);
    queue.clear_reported_reason(&pod);
    assert_eq!(queue.next_due(), Some(after(now, 1)));
    queue.pop(after(now, 1)).unwrap();
    assert!(queue.mark_unschedulable(&pod, "no room", BACKOFF, after(now, 1)));
}
