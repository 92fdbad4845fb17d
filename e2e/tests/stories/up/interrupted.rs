//! Ctrl-C in the middle of the start.

use kubewake_e2e::{up_process::HomeDir, wait_until};

#[test]
fn whenever_it_is_told_to_end_it_ends_and_leaves_nothing() {
    let any = "127.0.0.1:0";
    let home = HomeDir::default();
    // Before it has said anything, when there is an API server, when pods run.
    for (signal, seen) in [("INT", ""), ("TERM", "✓ cluster"), ("INT", "✓ viewer"), ("INT", "✓ operator")] {
        let mut up = home.spawn(&["--listen", any, "--otlp", any, "--otlp-http", any, "--api", any]);
        // Who is not there yet hears no signal: it holds its folder as soon as it does.
        let lock = home.path().join(".local/state/kubewake/up/lock");
        wait_until("the start has begun", || lock.exists() && up.stderr().contains(seen));
        up.signal(signal);
        let status = up.wait_for_exit();
        assert!(status.success(), "SIG{signal} after {seen:?}: {status}: {}", up.stderr());
        assert!(!up.stdout().contains("ready"), "{}", up.stdout());
        assert!(!up.stderr().contains('\u{1b}'), "there is no terminal: {}", up.stderr());
        home.wait_until_cleaned_up();
        std::fs::remove_file(lock).unwrap();
    }
}
