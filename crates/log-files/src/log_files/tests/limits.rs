//! Bounds: disk space of deleted files, open files, streams.

use std::time::Duration;

use super::follower::Node;
use crate::{LossCause, LostBytes, OutputId, ProblemKind};

#[test]
fn all_deleted_files_are_released_when_the_disk_is_nearly_full() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut follower = node.follow(node.settings(&["*.log"]));
    follower.expect(&["one"]);
    follower.set_answering(OutputId(0), false);
    node.append("a.log", "two\n");
    follower.step(Duration::from_millis(20));
    node.remove("a.log");
    follower.until("held", |follower| follower.files.statistics().deleted_bytes > 0);
    node.disk.0.lock().unwrap().free = 1 << 37;
    follower.until("released", |follower| follower.files.statistics().deleted_bytes == 0);
    follower.set_answering(OutputId(0), true);
    follower.until("loss", |follower| !follower.lost.is_empty());
    assert_eq!((follower.lost[0].bytes, follower.lost[0].cause), (LostBytes::Exact(4), LossCause::DiskSpace));
    follower.until("end", |follower| !follower.ended.is_empty());
}

#[test]
fn file_with_the_most_unread_bytes_is_closed_first() {
    let node = Node::new();
    for name in ["a", "b"] {
        node.write(&format!("{name}.log"), &format!("{name}\n"));
    }
    let mut settings = node.settings(&["*.log"]);
    // One of both files fits: each holds at least a block.
    settings.limits.deleted.bytes = 20_000;
    let mut follower = node.follow(settings);
    follower.expect(&["a", "b"]);
    follower.set_answering(OutputId(0), false);
    node.append("a.log", "small\n");
    node.append("b.log", &format!("{}\n", "x".repeat(30_000)));
    follower.step(Duration::from_millis(20));
    node.remove("a.log");
    node.remove("b.log");
    follower.until("released", |follower| follower.files.statistics().deleted_bytes > 0);
    follower.set_answering(OutputId(0), true);
    follower.expect(&["a", "b", "small"]);
    assert_eq!(follower.lost.iter().map(|lost| lost.bytes).collect::<Vec<_>>(), [LostBytes::Exact(30_001)]);
}

#[test]
fn many_files_are_read_with_few_open_ones() {
    let node = Node::new();
    let mut settings = node.settings(&["*.log"]);
    settings.limits.open_files = 4;
    let mut follower = node.follow(settings);
    follower.expect(&[]);
    let names: Vec<String> = (0..20).map(|number| format!("f{number}.log")).collect();
    for name in &names {
        node.write(name, &format!("{name} 1\n"));
    }
    follower.until("first", |follower| follower.all_lines().len() == 20);
    for name in &names {
        node.append(name, &format!("{name} 2\n"));
    }
    follower.until("second", |follower| follower.all_lines().len() == 40);
    node.write("new.log", "new\n");
    follower.until("new", |follower| follower.all_lines().len() == 41);
    assert!(follower.lost.is_empty());
}

#[test]
fn logs_beyond_the_bound_are_reported() {
    let node = Node::new();
    for number in 0..5 {
        node.write(&format!("f{number}.log"), &format!("{number}\n"));
    }
    let mut settings = node.settings(&["*.log"]);
    settings.limits.streams = 3;
    let mut follower = node.follow(settings);
    follower.until("three", |follower| follower.all_lines().len() == 3);
    follower.until("reports", |follower| follower.problems.len() == 2);
    assert!(follower.problems.iter().all(|problem| problem.kind == ProblemKind::Limit));
}

#[test]
fn logs_are_found_again_after_the_queue_of_changes_overflowed() {
    let node = Node::new();
    node.write("a.log", "one\n");
    let mut settings = node.settings(&["*.log"]);
    settings.rescan_interval = Duration::from_secs(3_600);
    let mut follower = node.follow(settings);
    follower.expect(&["one"]);
    // More than fs.inotify.max_queued_events has room for: two files, so that events do not merge.
    let limit: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    for _ in 0..limit / 2 + 100 {
        node.append("other.txt", "x");
        node.append("another.txt", "x");
    }
    node.append("a.log", "two\n");
    node.write("b.log", "b\n");
    follower.expect(&["one", "two", "b"]);
    assert_eq!(follower.files.statistics().overflows, 1);
}

#[test]
fn base_directory_that_vanishes_and_returns_is_followed_again() {
    let node = Node::new();
    node.write("base/x/a.log", "one\n");
    let mut settings = node.settings(&["base/**/*.log"]);
    settings.rescan_interval = Duration::from_secs(3_600);
    let mut follower = node.follow(settings);
    follower.expect(&["one"]);
    std::fs::remove_dir_all(node.path("base")).unwrap();
    follower.expect(&["one"]);
    node.write("base/y/z/b.log", "two\n");
    follower.expect(&["one", "two"]);
    node.append("base/y/z/b.log", "three\n");
    follower.expect(&["one", "two", "three"]);
}

#[test]
fn directory_that_cannot_be_watched_is_polled() {
    let node = Node::new();
    let mut settings = node.settings(&["logs/*/*.log"]);
    settings.rescan_interval = Duration::from_secs(3_600);
    let mut follower = node.follow(settings);
    follower.files.watcher.is_full = true;
    node.write("logs/x/a.log", "one\n");
    follower.expect(&["one"]);
    node.append("logs/x/a.log", "two\n");
    node.write("logs/y/b.log", "b\n");
    follower.expect(&["one", "two", "b"]);
    assert!(follower.problems.iter().all(|problem| problem.kind == ProblemKind::NotWatched));
    assert!(!follower.problems.is_empty());
}
