use std::{os::unix::process::CommandExt, process::Command};

use super::*;

#[test]
fn a_line_of_the_system_is_read_whatever_the_name() {
    let line = "42 (a (odd) 1 name) S 7 40 7 0 -1 4194304 1 2 3 4 100 50 30 20 20 0 1 0 12345 1000000 3 184467 1 1";
    let process = ProcessStat::parse(line).unwrap();
    assert_eq!((process.parent, process.group), (7, 40));
    assert_eq!(process.cpu, Duration::from_millis(200 * 1000 / clock_ticks_per_second()));
    assert_eq!(process.memory_bytes, 3 * page_size() as u64);
    assert_eq!(ProcessStat::parse("42 (cut) S 7"), None);
}

fn process(parent: i32, group: i32, millis: u64) -> ProcessStat {
    ProcessStat { parent, group, cpu: Duration::from_millis(millis), memory_bytes: 1000 }
}

#[test]
fn descendants_count_and_others_do_not() {
    let meter = UsageMeter::new(Duration::from_secs(10));
    let pod = NamespacedKey::new("default", "web");
    let _counting = meter.register(&pod, "main", 10);
    let world = [
        (1, process(0, 1, 99_000)),
        (10, process(1, 10, 100)),
        (11, process(10, 10, 200)),
        // In a group of its own.
        (12, process(11, 12, 400)),
        (13, process(1, 13, 99_000)),
    ];
    let mut state = meter.lock_state();
    state.measure(&world.into());
    let counted = &state.runs[&10];
    assert_eq!(counted.cpu[0].1, Duration::from_millis(700));
    assert_eq!(counted.memory_bytes, 3000);
}

#[test]
fn a_busy_process_is_seen_to_be_busy() {
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).process_group(0).spawn().unwrap();
    let meter = UsageMeter::new(Duration::from_secs(10));
    let pod = NamespacedKey::new("default", "busy");
    let counting = meter.register(&pod, "main", i32::try_from(busy.id()).unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    let used = loop {
        assert!(Instant::now() < end, "it never is");
        let main = meter.pod_usage(&pod).and_then(|usage| usage.containers.first().cloned());
        if let Some((name, used)) = main
            && used.cpu_nanocores > 0
        {
            assert_eq!(name, "main");
            break used;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(used.memory_bytes > 0 && !used.window.is_zero());
    drop(counting);
    assert_eq!(meter.pod_usage(&pod), None);
    busy.kill().unwrap();
    busy.wait().unwrap();
}
