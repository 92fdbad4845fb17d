//! Clusters that behave as real ones do: the API server is traced and decides by itself what is recorded, takes
//! a token for some seconds after its account is gone, its exporter takes its time to connect again, and others
//! write to the same objects.

use kubewake_e2e::TraceReceiver;

use super::{reconnecting::ReconnectingExporter, writer::OtherWriter, *};

/// Stories in which a trace begins with the webhook.
const TRACED: [&str; 2] = [
    "stories::webhook::rules::a_new_object_has_the_context_of_the_request_that_made_it",
    "stories::webhook::rules::only_another_spec_is_stamped_anew_and_the_old_context_is_linked",
];

/// Stories that read and then write, or compare what they read before and after.
const CONTENDED: [&str; 7] = [
    "stories::kubectl::apply::a_dry_run_and_a_diff_change_nothing",
    "stories::kubectl::change::labels_and_annotations_are_set_and_taken_away",
    "stories::kubectl::change::objects_are_patched_in_three_ways",
    "stories::kubectl::change::objects_are_replaced_and_edited",
    "stories::kubectl::read::one_waits_for_a_condition",
    "stories::python_kubernetes::the_documented_examples_work",
    "stories::webhook::rules::a_context_that_an_update_drops_comes_back",
];

/// Stories that compare the API server's spans, one after the other: nobody listens in between.
const HEARD: [&str; 2] = [
    "stories::head_operator::whole::one_apply_is_one_trace_until_everything_is_ready",
    "stories::head_operator::restart::a_new_operator_goes_on_with_the_trace",
];

/// An API server that sends its spans to somebody else, and samples so many of a million requests.
fn traced_elsewhere(traces: &TraceReceiver, per_million: u32) -> PathBuf {
    let path = traces.api_server_config(&[]);
    let config = fs::read_to_string(&path).unwrap();
    let own = config.replace("samplingRatePerMillion: 1000000", &format!("samplingRatePerMillion: {per_million}"));
    let own = own.lines().filter(|line| !line.starts_with("trustedGroups")).collect::<Vec<_>>().join("\n");
    fs::write(&path, own).unwrap();
    path
}

#[test]
fn stories_hold_where_the_api_server_is_traced_by_somebody_else() {
    for per_million in [1_000_000, 0] {
        let traces = TraceReceiver::start();
        let config = traced_elsewhere(&traces, per_million);
        let Some(kubectl) = Kubectl::start_with(&["--tracing-config-file", config.to_str().unwrap()]) else { return };
        tell(&TRACED, &kubectl, &[]);
    }
}

#[test]
fn stories_hold_where_tokens_outlive_their_account() {
    let Some(kubectl) = Kubectl::start_with(&["--token-cache-ttl", "3"]) else { return };
    tell(&["stories::kubectl::access::a_service_account_gets_a_token_and_may_what_its_role_says"], &kubectl, &[]);
}

#[test]
fn stories_hold_where_the_api_server_takes_its_time_to_connect_to_a_collector_again() {
    let folder = tempfile::tempdir().unwrap();
    let otlp = free_address();
    let exporter = ReconnectingExporter::start(otlp);
    let config = trusting_nobody(folder.path(), exporter.address());
    let Some(kubectl) = with_nodes(&["--tracing-config-file", config.to_str().unwrap()]) else { return };
    wait_until("the exporter fails to connect", || exporter.in_vain() > 0);
    tell(&HEARD, &kubectl, &[(OTLP_VARIABLE, &otlp.to_string())]);
}

#[test]
fn stories_hold_where_others_write_to_the_same_objects() {
    let Some(kubectl) = Kubectl::start() else { return };
    let _writer = OtherWriter::start(&kubectl);
    tell(&CONTENDED, &kubectl, &[]);
}

/// `cargo xtask test --long`
mod long {
    use super::*;

    #[test]
    #[ignore = "takes minutes: cargo xtask test --long"]
    fn all_stories_of_clients_hold_on_a_cluster_that_is_all_of_it() {
        let traces = TraceReceiver::start();
        for per_million in [1_000_000, 0] {
            let config = traced_elsewhere(&traces, per_million);
            let args = ["--tracing-config-file", config.to_str().unwrap(), "--token-cache-ttl", "10"];
            let Some(kubectl) = with_nodes(&args) else { return };
            let _writer = OtherWriter::start(&kubectl);
            let told = told(
                &["stories::kubectl::", "stories::python_kubernetes::", "stories::webhook::rules::"],
                &kubectl,
                &[],
            );
            let said = String::from_utf8_lossy(&told.stdout);
            assert!(told.status.success(), "{said}{}", String::from_utf8_lossy(&told.stderr));
        }
    }
}
