//! A container whose log the kubelet rotates while a backend is away.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};

use super::*;

fn cri_lines(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("2026-11-19T18:00:00.{number:09}Z stdout F line {number}\n")).collect()
}

/// Does what a kubelet does: it compresses what was rotated before, renames the live file, and the runtime opens a new
/// one.
fn rotate(live: &Path, second: usize) {
    let directory = live.parent().unwrap();
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path != live && path.extension().is_some_and(|end| end != "gz")) {
        let compressed = format!("{}.gz", path.display());
        let temporary = format!("{compressed}.tmp");
        let mut encoder = GzEncoder::new(fs::File::create(&temporary).unwrap(), Compression::fast());
        encoder.write_all(&fs::read(&path).unwrap()).unwrap();
        encoder.finish().unwrap();
        fs::rename(temporary, compressed).unwrap();
        fs::remove_file(path).unwrap();
    }
    fs::rename(live, format!("{}.20261119-1800{second:02}", live.display())).unwrap();
    fs::File::create(live).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_cost_no_line_while_a_backend_is_away_and_the_receiver_is_killed() {
    let mut fixture = Fixture::new("start_at: beginning, include_file_path: true, operators: [{type: container}]");
    fixture.set_include("*/*/*.log");
    let (quick, slow) = (fixture.backend("quick"), fixture.backend("slow"));
    slow.set_mood(Mood::Hangs);
    let name = "shop_cart-1_0b9c/app/0.log";
    fixture.write(name, &cri_lines(0..500));
    fixture.start(&["quick", "slow"]);
    for round in 1..5 {
        quick.wait_for_count(round * 500).await;
        rotate(&fixture.path(name), round);
        fixture.write(name, &cri_lines(round * 500..(round + 1) * 500));
    }
    quick.wait_for_count(2500).await;
    fixture.kill();
    slow.set_mood(Mood::Takes);
    fixture.start(&["quick", "slow"]);
    wait_until("every line", || slow.bodies().contains(&"line 2499".to_owned())).await;
    fixture.stop().await;
    assert_each(&slow.bodies(), 0..2500);
    assert_each(&quick.bodies(), 0..2500);
}
