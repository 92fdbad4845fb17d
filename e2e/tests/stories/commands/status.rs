//! Everything at a glance, also where parts of it are missing.

use kubewake_e2e::{
    ClusterUnderTest, LoadGenerator, SinkProcess, free_address,
    operator::{OperatorCluster, trace_pipeline},
};

use super::run;

#[test]
fn without_a_cluster_it_says_so() {
    let home = tempfile::tempdir().unwrap();
    let said = run(home.path(), "status");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stdout.contains("CLUSTER    Unreachable") && said.stdout.contains("kubewake up"), "{}", said.stdout);
    let said = run(home.path(), "status -o name");
    assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{said:?}");
    assert!(said.stderr.contains("no cluster found"), "{said:?}");
    let said = run(home.path(), "status -o json --kubeconfig nowhere");
    assert_eq!((said.code, said.json()["cluster"]["reachable"].as_bool()), (1, Some(false)), "{said:?}");
    assert!(said.stdout.contains("failed to read kubeconfig nowhere"), "{}", said.stdout);
}

#[test]
fn on_a_cluster_without_kubewake_it_says_what_is_missing() {
    let cluster = ClusterUnderTest::start();
    let said = run(cluster.folder(), &format!("status --kubeconfig {}", cluster.kubeconfig().display()));
    assert_eq!(said.code, 1, "{said:?}");
    for words in ["CLUSTER    v1.", "OPERATOR   Absent", "the CRDs are not installed", "the operator is not installed"]
    {
        assert!(said.stdout.contains(words), "{words}:\n{}", said.stdout);
    }
}

#[test]
fn it_shows_what_runs_and_what_flows() {
    let Some(operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let report = operated.send_until_delivered(&sink, &["--seconds", "1", "--rate", "500"]);
    let home = operated.kubectl.cluster().folder();
    let status = |form: &str| {
        run(home, &format!("status -o {form} --kubeconfig {}", operated.kubectl.cluster().kubeconfig().display()))
    };

    let said = status("json");
    let seen = said.json();
    assert_eq!((said.code, &seen["problems"]), (0, &serde_json::json!([])), "{said:?}");
    assert_eq!(seen["operator"]["leader"], "story");
    let pipeline = &seen["pipelines"][0];
    assert_eq!((&pipeline["name"], &pipeline["state"]), (&"backend".into(), &"Ready".into()), "{pipeline}");
    assert!(pipeline["received"].as_u64().unwrap() >= report.items("acknowledged"), "{pipeline}");
    assert_eq!(pipeline["sent"], pipeline["received"]);
    let collectors = seen["collectors"].as_array().unwrap();
    assert!(collectors.len() >= 2 && collectors.iter().all(|it| it["says"] == "ready"), "{collectors:?}");

    let table = status("table").stdout;
    assert!(table.contains("tracepipeline/backend") && table.contains("kubewake-gateway-"), "{table}");
    assert!(!table.contains('\u{1b}'), "there is no terminal, and so no colour:\n{table}");
    let names = status("name").stdout;
    assert!(names.contains("tracepipeline.telemetry.kubewake.io/backend\n") && names.contains("\npod/"), "{names}");
    assert!(status("yaml").stdout.contains("\npipelines:\n"));

    // What `up` wrote down is found by itself, also if its viewer is not there.
    let state = home.join(".local/state/kubewake/running");
    std::fs::create_dir_all(&state).unwrap();
    let kubeconfig = operated.kubectl.cluster().kubeconfig();
    let page = format!("http://{}", free_address());
    let otlp = serde_json::json!({"grpc": "http://127.0.0.1:1", "http": "http://127.0.0.1:1"});
    let up = serde_json::json!({"version": 1, "pid": 1, "page": page, "kubeconfig": kubeconfig, "otlp": otlp});
    std::fs::write(state.join("1.json"), up.to_string()).unwrap();
    // As long as it holds its file, it runs.
    let held = std::fs::File::open(state.join("1.json")).unwrap();
    held.lock().unwrap();
    let said = run(home, "status");
    assert!(said.code == 0 && said.stdout.contains("(kubewake up)"), "{said:?}");
    assert!(said.stdout.contains(&format!("VIEWER     Absent   no viewer at {page}")), "{}", said.stdout);

    // A backend that has gone is told, and the exit code with it.
    drop(sink);
    let target = ["--seconds", "1", "--rate", "50"];
    LoadGenerator::run("grpc", operated.otlp(), &target);
    operated.wait_for_reason("tracepipeline/backend", "BackendUnreachable");
    let said = status("table");
    assert!(said.code == 1 && said.stdout.contains("PROBLEMS\n! tracepipeline/backend is Degraded"), "{said:?}");
}
