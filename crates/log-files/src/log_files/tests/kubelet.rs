//! Logs of containers, rotated as a kubelet does it.

use std::time::Duration;

use super::follower::{Follower, Node};
use crate::{LostBytes, OutputId, StartAt};

const LOG: &str = "pods/ns_pod_uid/c/0.log";
const PATTERN: &str = "pods/*/*/*.log";

fn rotated(number: u32) -> String {
    format!("{LOG}.20231114-{number:06}")
}

fn follow(node: &Node) -> Follower {
    let mut settings = node.settings(&[PATTERN]);
    settings.rescan_interval = Duration::from_secs(3_600);
    node.follow(settings)
}

/// Renames the live file, and compresses the one that was renamed before.
fn rotate(node: &Node, number: u32) {
    if number > 1 {
        node.gzip(&rotated(number - 1), &format!("{}.gz", rotated(number - 1)));
    }
    node.rename(LOG, &rotated(number));
}

#[test]
fn generations_are_read_in_order_and_none_is_missed() {
    let node = Node::new();
    node.write(LOG, "a 1\n");
    let mut follower = follow(&node);
    follower.expect(&["a 1"]);
    // The runtime writes to the renamed file until it opens a new one.
    rotate(&node, 1);
    node.append(&rotated(1), "a 2\n");
    follower.expect_in_order(&["a 1", "a 2"]);
    node.append(&rotated(1), "a 3\n");
    node.write(LOG, "b 1\n");
    follower.expect_in_order(&["a 1", "a 2", "a 3", "b 1"]);
    assert!(follower.lost.is_empty());
    assert_eq!(follower.files.streams().count(), 1);
}

#[test]
fn reader_that_lags_by_several_rotations_loses_nothing() {
    let node = Node::new();
    node.write(LOG, "a 1\na 2\n");
    let mut follower = follow(&node);
    follower.expect(&["a 1", "a 2"]);
    follower.set_answering(OutputId(0), false);
    for number in 1..=4 {
        node.append(LOG, &format!("late {number}\n"));
        rotate(&node, number);
        node.write(LOG, &format!("next {number}\n"));
        follower.step(Duration::from_millis(20));
    }
    follower.set_answering(OutputId(0), true);
    let expected = ["a 1", "a 2", "late 1", "next 1", "late 2", "next 2", "late 3", "next 3", "late 4", "next 4"];
    follower.expect_in_order(&expected);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
}

#[test]
fn line_that_goes_on_behind_a_rotation_is_whole() {
    let node = Node::new();
    node.write(LOG, "one\ntw");
    let mut follower = follow(&node);
    follower.expect(&["one"]);
    rotate(&node, 1);
    node.write(LOG, "o\n");
    follower.expect_in_order(&["one", "two"]);
}

#[test]
fn rotated_files_that_were_there_before_are_read_in_order() {
    let node = Node::new();
    node.write(&rotated(1), "a\n");
    node.gzip(&rotated(1), &format!("{}.gz", rotated(1)));
    node.write(&rotated(2), "b\n");
    node.write(LOG, "c\n");
    let mut follower = follow(&node);
    follower.expect_in_order(&["a", "b", "c"]);

    let mut settings = node.settings(&[PATTERN]);
    settings.start_at = StartAt::End;
    let mut follower = node.follow(settings);
    follower.expect(&[]);
    node.append(LOG, "d\n");
    follower.expect(&["d"]);
}

#[test]
fn plain_file_and_its_compressed_copy_are_one_generation() {
    let node = Node::new();
    node.write(&rotated(1), "a\n");
    node.write("copy", "a\n");
    node.gzip("copy", &format!("{}.gz", rotated(1)));
    node.write(LOG, "b\n");
    let mut follower = follow(&node);
    follower.expect_in_order(&["a", "b"]);
}

#[test]
fn tail_of_a_run_that_has_ended_is_delivered() {
    let node = Node::new();
    node.write(LOG, "one\ntail");
    let mut follower = follow(&node);
    follower.expect(&["one"]);
    node.write("pods/ns_pod_uid/c/1.log", "next run\n");
    follower.expect(&["one", "tail", "next run"]);
}

#[test]
fn removed_pod_is_read_to_its_end_and_forgotten() {
    let node = Node::new();
    node.write(LOG, "one\n");
    let mut follower = follow(&node);
    follower.expect(&["one"]);
    follower.set_answering(OutputId(0), false);
    node.append(LOG, "two\ntail");
    std::fs::remove_dir_all(node.path("pods/ns_pod_uid")).unwrap();
    follower.step(Duration::from_millis(50));
    assert!(follower.ended.is_empty());
    follower.set_answering(OutputId(0), true);
    follower.until("tail", |follower| follower.all_lines().contains(&"tail".to_owned()));
    follower.until("end", |follower| follower.ended.len() == 1);
    assert_eq!(follower.files.streams().count(), 0);
    assert!(follower.lost.is_empty());
}

#[test]
fn file_that_was_renamed_back_goes_on() {
    let node = Node::new();
    node.write(LOG, "one\n");
    let mut follower = follow(&node);
    follower.expect(&["one"]);
    node.rename(LOG, &rotated(1));
    follower.step(Duration::from_millis(20));
    node.rename(&rotated(1), LOG);
    node.append(LOG, "two\n");
    follower.expect_in_order(&["one", "two"]);
    assert_eq!(follower.files.streams().count(), 1);
}

#[test]
fn closed_file_is_continued_from_its_compressed_copy() {
    let node = Node::new();
    node.write(LOG, "a 1\na 2\n");
    let mut settings = node.settings(&[PATTERN]);
    // Nothing that is deleted may stay open.
    settings.limits.deleted.bytes = 0;
    let mut follower = node.follow(settings);
    follower.expect(&["a 1", "a 2"]);
    follower.set_answering(OutputId(0), false);
    node.append(LOG, "a 3\n");
    rotate(&node, 1);
    node.write(LOG, "b 1\n");
    follower.step(Duration::from_millis(20));
    rotate(&node, 2);
    node.write(LOG, "c 1\n");
    follower.until("compressed", |follower| {
        follower.files.streams().all(|stream| {
            stream.generations.iter().all(|generation| generation.plain.as_ref().is_none_or(|slot| slot.name.is_some()))
        })
    });
    follower.set_answering(OutputId(0), true);
    follower.expect_in_order(&["a 1", "a 2", "a 3", "b 1", "c 1"]);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
}

#[test]
fn deleted_file_beyond_the_limit_is_lost_to_the_byte() {
    let node = Node::new();
    node.write(LOG, "a 1\n");
    let mut settings = node.settings(&[PATTERN]);
    settings.limits.deleted.bytes = 0;
    let mut follower = node.follow(settings);
    follower.expect(&["a 1"]);
    follower.set_answering(OutputId(0), false);
    node.append(LOG, "a 2\na 3\n");
    node.rename(LOG, &rotated(1));
    node.write(LOG, "b 1\n");
    follower.step(Duration::from_millis(20));
    node.remove(&rotated(1));
    follower.until("released", |follower| {
        follower.files.streams().any(|stream| stream.generations.iter().any(|generation| !generation.has_file()))
    });
    follower.set_answering(OutputId(0), true);
    follower.expect_in_order(&["a 1", "b 1"]);
    assert_eq!(follower.lost.len(), 1);
    assert_eq!(follower.lost[0].bytes, LostBytes::Exact(8));
}
