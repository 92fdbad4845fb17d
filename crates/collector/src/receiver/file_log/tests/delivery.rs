//! Outputs that hang, are busy, refuse or lose answers, and what that means for others.

use super::*;

/// Lines of about a hundred bytes.
fn long_lines(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("line {number:090}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_hangs_holds_up_no_other_and_gets_everything_when_it_is_back() {
    let mut fixture = Fixture::new("start_at: beginning");
    // Room for a few requests only, far less than the file.
    fixture.memory = 4 << 20;
    let (quick, slow) = (fixture.backend("quick"), fixture.backend("slow"));
    slow.set_mood(Mood::Hangs);
    fixture.write("a.log", &long_lines(0..40_000));
    fixture.start(&["quick", "slow"]);
    quick.wait_for_count(40_000).await;
    assert!(slow.bodies().is_empty());
    let held = fixture.pipelines[0].budget.used();
    assert!(held < 2 << 20, "{held} bytes are held");
    slow.set_mood(Mood::Takes);
    slow.wait_for_count(40_000).await;
    fixture.stop().await;
    for backend in [quick, slow] {
        assert_each_once(&backend.bodies(), 0..40_000);
    }
    assert_eq!(fixture.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_without_room_costs_no_line_and_delivers_none_twice() {
    let mut fixture = Fixture::new("start_at: beginning");
    fixture.queue.queue_size = 1;
    let (quick, slow) = (fixture.backend("quick"), fixture.backend("slow"));
    slow.set_mood(Mood::Hangs);
    for file in 0..8 {
        fixture.write(&format!("{file}.log"), &lines(file * 500..(file + 1) * 500));
    }
    fixture.start(&["quick", "slow"]);
    quick.wait_for_count(4000).await;
    slow.set_mood(Mood::Takes);
    slow.wait_for_count(4000).await;
    fixture.stop().await;
    for backend in [quick, slow] {
        assert_each_once(&backend.bodies(), 0..4000);
    }
    assert_eq!(fixture.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_whose_retries_are_used_up_gets_everything_later() {
    let mut fixture = Fixture::new("start_at: beginning");
    let backend = fixture.backend("nop");
    backend.set_mood(Mood::IsBusy);
    fixture.write("a.log", &lines(0..500));
    fixture.start(&["nop"]);
    backend.wait_for_attempts(30).await;
    fixture.write("a.log", &lines(500..1000));
    backend.set_mood(Mood::Takes);
    backend.wait_for_count(1000).await;
    fixture.stop().await;
    assert_eq!(backend.bodies(), bodies(0..1000));
    assert_eq!(fixture.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_cost_duplicates_and_no_line() {
    let mut fixture = Fixture::new("start_at: beginning");
    let backend = fixture.backend("nop");
    backend.set_mood(Mood::LosesAnswers);
    fixture.write("a.log", &lines(0..100));
    fixture.start(&["nop"]);
    backend.wait_for_attempts(3).await;
    backend.set_mood(Mood::Takes);
    fixture.stop().await;
    assert!(backend.bodies().len() > 100);
    assert_each(&backend.bodies(), 0..100);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_refused_for_good_are_counted_and_hold_nothing_up() {
    let mut fixture = Fixture::new("start_at: beginning");
    let backend = fixture.backend("nop");
    backend.set_mood(Mood::Refuses);
    fixture.write("a.log", &lines(0..10));
    fixture.start(&["nop"]);
    wait_until("the loss", || fixture.dropped() == 10).await;
    backend.set_mood(Mood::Takes);
    fixture.write("a.log", "more\n");
    backend.wait_for_bodies(&["more"]).await;
    fixture.stop().await;
    fixture.start(&["nop"]);
    fixture.write("a.log", "last\n");
    backend.wait_for_bodies(&["more", "last"]).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipeline_without_memory_delays_lines_and_loses_none() {
    let mut fixture = Fixture::new("start_at: beginning");
    fixture.memory = 1 << 20;
    let backend = fixture.backend("nop");
    fixture.write("a.log", &long_lines(0..20_000));
    fixture.start(&["nop"]);
    let other = fixture.pipelines[0].pipeline.reserve(1 << 20).unwrap();
    // Submitted or not, nothing can be held now.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    drop(other);
    backend.wait_for_count(20_000).await;
    fixture.stop().await;
    assert_each_once(&backend.bodies(), 0..20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn successor_continues_with_what_is_in_flight() {
    let mut fixture = Fixture::new("start_at: beginning");
    let backend = fixture.backend("nop");
    backend.set_mood(Mood::Hangs);
    fixture.write("a.log", &lines(0..100));
    fixture.start(&["nop"]);
    backend.wait_for_attempts(1).await;
    fixture.set_settings("start_at: beginning, include_file_name: false");
    fixture.start_receiver();
    fixture.write("a.log", &lines(100..200));
    backend.set_mood(Mood::Takes);
    backend.wait_for_count(200).await;
    fixture.stop().await;
    assert_eq!(backend.bodies(), bodies(0..200));
    assert!(backend.record_attributes().last().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_new_starts_as_start_at_says_and_others_go_on() {
    for (start_at, expected) in [("beginning", 0..200), ("end", 100..200)] {
        let mut fixture = Fixture::new("start_at: beginning");
        let (old, new) = (fixture.backend("old"), fixture.backend("new"));
        fixture.write("a.log", &lines(0..100));
        fixture.start(&["old"]);
        old.wait_for_count(100).await;
        fixture.set_settings(&format!("start_at: {start_at}"));
        fixture.start_receiver();
        fixture.set_exporters(0, &["old", "new"]);
        fixture.wait_until_stored("logs/a new").await;
        fixture.write("a.log", &lines(100..200));
        old.wait_for_count(200).await;
        new.wait_for_count(expected.len()).await;
        fixture.stop().await;
        assert_eq!(old.bodies(), bodies(0..200));
        assert_eq!(new.bodies(), bodies(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_are_fed_apart_from_each_other() {
    let mut fixture = Fixture::new("start_at: beginning");
    let (a, b) = (fixture.backend("a"), fixture.backend("b"));
    b.set_mood(Mood::IsBusy);
    fixture.write("a.log", &lines(0..300));
    fixture.add_pipeline("first", &["a"]);
    fixture.add_pipeline("second", &["b"]);
    fixture.start_receiver();
    a.wait_for_count(300).await;
    b.set_mood(Mood::Takes);
    b.wait_for_count(300).await;
    fixture.stop().await;
    assert_eq!((a.bodies(), b.bodies()), (bodies(0..300), bodies(0..300)));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_each_output_is_published() {
    let mut fixture = Fixture::new("start_at: beginning");
    let (quick, slow) = (fixture.backend("quick"), fixture.backend("slow"));
    slow.set_mood(Mood::Hangs);
    fixture.write("a.log", "2 of 7\n");
    fixture.start(&["quick", "slow"]);
    quick.wait_for_count(1).await;
    let stats = fixture.registry().log_file(&kubewake_config::ComponentId::new("file_log"));
    let lags = || -> Vec<u64> { stats.outputs().iter().map(|output| output.lag_bytes).collect() };
    wait_until("the lag of one", || lags() == [0, 7]).await;
    slow.set_mood(Mood::Takes);
    wait_until("the lag of none", || lags() == [0, 0]).await;
    assert_eq!(stats.logs.load(std::sync::atomic::Ordering::Relaxed), 1);
    fixture.stop().await;
    assert!(stats.outputs().is_empty());
}
