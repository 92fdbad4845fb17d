//! A container that writes while it is read, with a kubelet that rotates at the same time.

use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};

use super::follower::{Follower, Node};
use crate::OutputId;

const ROTATIONS: u32 = 40;
const LINES_OF_A_FILE: u64 = 500;

/// Writes numbered lines, and rotates after some of them: renames the live file, lets a late line follow, compresses
/// the file before, and removes the oldest ones.
fn write_and_rotate(directory: &PathBuf, kept_files: usize) -> u64 {
    fs::create_dir_all(directory).unwrap();
    let live = directory.join("0.log");
    let rotated = |number: u32| directory.join(format!("0.log.20231114-{number:06}"));
    let compressed = |number: u32| directory.join(format!("0.log.20231114-{number:06}.gz"));
    let mut number = 0;
    let mut write = |file: &mut File, lines: u64| {
        for _ in 0..lines {
            file.write_all(format!("{number:020} line\n").as_bytes()).unwrap();
            number += 1;
        }
    };
    let mut file = File::create(&live).unwrap();
    for rotation in 1..=ROTATIONS {
        write(&mut file, LINES_OF_A_FILE);
        if rotation > 1 {
            let temporary = directory.join("0.log.tmp");
            let mut encoder = GzEncoder::new(File::create(&temporary).unwrap(), Compression::fast());
            encoder.write_all(&fs::read(rotated(rotation - 1)).unwrap()).unwrap();
            encoder.finish().unwrap();
            fs::rename(temporary, compressed(rotation - 1)).unwrap();
            fs::remove_file(rotated(rotation - 1)).unwrap();
        }
        let oldest = rotation.checked_sub(u32::try_from(kept_files).unwrap()).filter(|oldest| *oldest > 0);
        if let Some(oldest) = oldest {
            fs::remove_file(compressed(oldest)).unwrap();
        }
        fs::rename(&live, rotated(rotation)).unwrap();
        write(&mut file, 3);
        file = File::create_new(&live).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    write(&mut file, LINES_OF_A_FILE);
    number
}

/// Follows a log while it is written, and until everything is read.
fn follow_writer(kept_files: usize, read: impl Fn(&mut Follower) + Sync) -> (Follower, u64) {
    let node = Node::new();
    let mut settings = node.settings(&["pods/*/*/*.log"]);
    settings.rescan_interval = Duration::from_secs(3_600);
    let mut follower = node.follow(settings);
    let directory = node.path("pods/ns_pod_uid/c");
    let is_done = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = write_and_rotate(&directory, kept_files);
            is_done.store(true, Ordering::Relaxed);
            written
        });
        while !is_done.load(Ordering::Relaxed) {
            read(&mut follower);
        }
        writer.join().unwrap()
    });
    follower.set_answering(OutputId(0), true);
    let last = format!("{:020} line", written - 1);
    follower.until("the last line", |follower| follower.all_lines().last() == Some(&last));
    follower.handle_rest();
    (follower, written)
}

fn require_order(follower: &Follower) {
    let delivered = follower.delivered.get(&OutputId(0)).cloned().unwrap_or_default();
    let wrong = delivered.windows(2).find(|pair| pair[0].2 >= pair[1].2);
    assert!(wrong.is_none(), "lines are out of order or repeated: {wrong:?}, {:?}", follower.lost);
}

#[test]
fn reader_of_a_busy_log_gets_every_line_once_and_in_order() {
    let (follower, written) = follow_writer(1_000, |follower| follower.step(Duration::from_millis(1)));
    require_order(&follower);
    assert_eq!(follower.all_lines().len() as u64, written, "lost {:?}", follower.lost);
    assert!(follower.lost.is_empty(), "{:?}", follower.lost);
}

#[test]
fn output_that_hangs_while_files_are_removed_gets_no_byte_that_is_reported_as_lost() {
    let (follower, written) = follow_writer(3, |follower| {
        // All that is removed has to be given up at once.
        follower.files.settings.limits.deleted.bytes = 0;
        follower.set_answering(OutputId(0), false);
        follower.step(Duration::from_millis(1));
    });
    require_order(&follower);
    let line = "00000000000000000000 line\n".len() as u64;
    let delivered = follower.bytes.get(&OutputId(0)).copied().unwrap_or(0);
    let lost: u64 = follower.lost.iter().map(|lost| lost.bytes.known()).sum();
    assert!(lost > 0);
    // Files that come and go between two looks are in no figure; no byte is both delivered and lost.
    assert!(delivered + lost <= written * line, "{delivered} delivered, {:?}", follower.lost);
}
