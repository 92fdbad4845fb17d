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
