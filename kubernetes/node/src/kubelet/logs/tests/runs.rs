//! Which runs have logs, where they are, and which one is read.

use super::*;

#[tokio::test]
async fn log_has_the_names_and_permissions_of_a_kubelet() {
    let fixture = Fixture::new();
    say(&fixture.begin(3), AT, &["hello"]);
    assert_eq!(fixture.files(), ["3.log"]);
    let log = fixture.container_dir().join("3.log");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fixture.links(), ["web_shop_main-run3.log"]);
    let link = fixture.dir.path().join("var/log/containers/web_shop_main-run3.log");
    assert_eq!(fs::read_link(&link).unwrap(), log);
    assert_eq!(fs::read_to_string(&link).unwrap(), format!("{AT} stderr F hello\n"));
    fixture.logs.remove(&POD);
    assert!(fixture.links().is_empty() && names(&fixture.dir.path().join("var/log/pods")).is_empty());
}

#[test]
fn name_of_a_link_is_cut_to_what_a_file_system_allows() {
    let fixture = Fixture::new();
    let pod = PodLogKey { pod: &"p".repeat(200), ..POD };
    let id = "0".repeat(64);
    let key = ContainerLogKey { pod, container: "main", id: &id, number: 0 };
    fixture.logs.begin(&key).unwrap();
    let [link] = fixture.links().try_into().unwrap();
    assert_eq!(link.len(), 255);
    assert!(link.starts_with(&format!("{}_shop_main-000", pod.pod)) && link.ends_with("0.log"), "{link}");
    fixture.logs.remove(&pod);
    assert!(fixture.links().is_empty());
}

#[tokio::test]
async fn options_select_lines_and_bytes_and_add_times() {
    let fixture = Fixture::new();
    let run = fixture.begin(0);
    say(&run, "2026-01-01T00:00:00Z", &["one", "two"]);
    say(&run, AT, &["three", "four"]);
    assert_eq!(fixture.read(0, &all()).await, "one\ntwo\nthree\nfour\n");
    assert_eq!(fixture.read(0, &tail(1)).await, "four\n");
    assert_eq!(fixture.read(0, &tail(0)).await, "");
    assert_eq!(fixture.read(0, &tail(99)).await, "one\ntwo\nthree\nfour\n");
    assert_eq!(fixture.read(0, &LogOptions { limit_bytes: Some(6), ..all() }).await, "one\ntw");
    let since = Some(LogSince::Time(time("2026-01-02T00:00:00Z")));
    assert_eq!(fixture.read(0, &LogOptions { since, ..all() }).await, "three\nfour\n");
    let since = |seconds| LogOptions { since: Some(LogSince::Seconds(seconds)), ..all() };
    assert_eq!(fixture.read(0, &since(1)).await, "");
    assert_eq!(fixture.read(0, &since(u64::MAX)).await.lines().count(), 4);
    let timed = LogOptions { timestamps: true, ..tail(1) };
    assert_eq!(fixture.read(0, &timed).await, "2026-01-02T03:04:05.060000000Z four\n");
}

#[tokio::test]
async fn partial_entries_are_joined_and_get_one_time() {
    let fixture = Fixture::new();
    let run = fixture.begin(0);
    let long = "x".repeat(40_000);
    say(&run, AT, &[&long, "short"]);
    assert_eq!(fixture.read(0, &all()).await, format!("{long}\nshort\n"));
    let timed = LogOptions { timestamps: true, ..all() };
    let at = "2026-01-02T03:04:05.060000000Z";
    assert_eq!(fixture.read(0, &timed).await, format!("{at} {long}\n{at} short\n"));
    // As in a kubelet, an entry counts as a line of the tail.
    assert_eq!(fixture.read(0, &tail(2)).await, format!("{}\nshort\n", "x".repeat(40_000 - 2 * 16_384)));
    assert_eq!(run.tail(1, 2048), "short\n");
}

#[tokio::test]
async fn run_before_the_last_one_is_kept_and_earlier_ones_are_removed() {
    let fixture = Fixture::new();
    for (number, words) in [(0, "first"), (1, "second"), (2, "third")] {
        let run = fixture.begin(number);
        say(&run, AT, &[words]);
        run.finish();
    }
    assert_eq!(fixture.files(), ["1.log", "2.log"]);
    assert_eq!(fixture.links(), ["web_shop_main-run1.log", "web_shop_main-run2.log"]);
    assert_eq!(fixture.read(2, &all()).await, "third\n");
    assert_eq!(fixture.read(2, &previous()).await, "second\n");
    // One dead run is kept in all.
    fixture.logs.remove_dead_runs();
    assert_eq!((fixture.files(), fixture.links().len()), (vec!["2.log".to_owned()], 1));
    assert!(fixture.open(&previous(), &running(2)).await.unwrap_err().ends_with("is no longer stored"));
    let next = fixture.begin(3);
    fixture.logs.remove_dead_runs();
    assert_eq!(fixture.files(), ["2.log", "3.log"], "the run that runs is not dead");
    next.finish();
}

#[tokio::test]
async fn status_of_the_container_tells_which_run_is_read() {
    let fixture = Fixture::new();
    let status = |state: ContainerState, last: Option<ContainerState>| ContainerStatus {
        state: Some(state),
        last_state: last,
        ..ContainerStatus::default()
    };
    let waiting = |reason: &str| status(waiting_state(reason), None);
    let message = |reason: &str| format!("container \"main\" in pod \"web\" is waiting to start: {reason}");
    let refused =
        async |options: &LogOptions, status: &ContainerStatus| fixture.open(options, status).await.unwrap_err();
    assert_eq!(refused(&all(), &waiting("ContainerCreating")).await, message("ContainerCreating"));
    assert_eq!(refused(&all(), &waiting("ErrImagePull")).await, message("image can't be pulled"));
    assert_eq!(refused(&all(), &waiting("ImagePullBackOff")).await, message("trying and failing to pull image"));
    let missing = "previous terminated container \"main\" in pod \"web\" not found";
    assert_eq!(refused(&previous(), &waiting("ContainerCreating")).await, missing);
    for (number, words) in [(0, "first"), (1, "second")] {
        let run = fixture.begin(number);
        say(&run, AT, &[words]);
        run.finish();
    }
    // While it waits for its restart, the last run is also the previous one.
    let crashed = status(waiting_state("CrashLoopBackOff"), Some(terminated_state(1)));
    assert_eq!(fixture.open(&all(), &crashed).await.unwrap(), "second\n");
    assert_eq!(fixture.open(&previous(), &crashed).await.unwrap(), "second\n");
    let ended = status(terminated_state(1), Some(terminated_state(0)));
    assert_eq!(fixture.open(&all(), &ended).await.unwrap(), "second\n");
    assert_eq!(fixture.open(&previous(), &ended).await.unwrap(), "first\n");
    assert_eq!(refused(&previous(), &running(0)).await, missing);
    // The status of a run that begins just now is not set yet.
    let next = fixture.begin(2);
    assert_eq!(fixture.open(&previous(), &crashed).await.unwrap(), "second\n");
    next.finish();
}

#[tokio::test]
async fn node_that_starts_again_finds_its_logs() {
    let mut fixture = Fixture::new();
    for (number, words) in [(0, "first"), (1, "second"), (2, "third")] {
        let run = fixture.begin(number);
        say(&run, AT, &[words]);
        run.finish();
    }
    fixture = fixture.restarted();
    assert_eq!(fixture.read(2, &all()).await, "third\n");
    assert_eq!(fixture.read(2, &previous()).await, "second\n");
    // A following reader ends.
    assert_eq!(fixture.read(2, &LogOptions { follow: true, ..all() }).await, "third\n");
    // Without links the order decides.
    fs::remove_dir_all(fixture.dir.path().join("var/log/containers")).unwrap();
    fixture = fixture.restarted();
    assert_eq!(fixture.read(2, &all()).await, "third\n");
    assert_eq!(fixture.read(2, &previous()).await, "second\n");
    // Also if the restart count could not be recorded.
    let run = fixture.begin(1);
    assert_eq!(run.number(), 3);
    say(&run, AT, &["fourth"]);
    assert_eq!(fixture.files(), ["2.log", "3.log"]);
}

#[test]
fn logs_of_pods_that_were_deleted_meanwhile_are_removed_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.begin(0).finish();
    let pods = fixture.dir.path().join("var/log/pods");
    let gone = "0d5a3c1e-1111-4222-8333-444455557777";
    fs::create_dir_all(pods.join(format!("shop_gone_{gone}/main"))).unwrap();
    fs::create_dir_all(pods.join("of somebody else")).unwrap();
    let dead = fixture.dir.path().join("var/log/containers/gone_shop_main-1.log");
    std::os::unix::fs::symlink(pods.join(format!("shop_gone_{gone}/main/0.log")), &dead).unwrap();
    let fixture = fixture.restarted();
    fixture.logs.remove_others(|| HashSet::from([UID.to_owned()]));
    assert_eq!(names(&pods), ["of somebody else".to_owned(), format!("shop_web_{UID}")]);
    assert_eq!(fixture.links(), ["web_shop_main-run0.log"]);
}
