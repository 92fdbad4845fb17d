//! From `kubectl apply` to Ready.

use kubewake_e2e::Traced;

use super::{
    IMAGE, OURS, TRUSTED, clean_up, cluster, head, is_real, operator, parts, prepared, stop, wait_ready, webhook,
};

/// On events, for people.
const TRACE_ID: &str = "trail.kubewake.io/trace-id";

/// The webhook inside the API server's request.
const STAMP_CHILD: &str = "            stamp ChildA [kubewake-webhook] server\n";

/// Everything that comes of a Head with one child. Where something may happen once or more often, no number is said.
pub(super) const CONVERGENCE: &str = "
POST DEMO/heads [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
    reconcile Head [head-operator] consumer
      apply ChildA [head-operator] producer
        PATCH DEMO/childas/{:name} [head-operator] client
          PATCH DEMO/childas/{:name} [apiserver] server
            stamp ChildA [kubewake-webhook] server
        converge ChildA [head-operator] internal x1
        reconcile ChildA [head-operator] consumer
          <deployment>
          <status of ChildA>
          <events>
      <list>
      <status of Head>
      <events>
";

/// Where the API server tells nobody, it may also not pass contexts on; then the webhook has only that of the writer.
fn dark() -> String {
    let (passed_on, not) =
        (STAMP_CHILD.replace("stamp", "? stamp"), "        ? stamp ChildA [kubewake-webhook] server\n");
    CONVERGENCE.replace(STAMP_CHILD, &(passed_on + not))
}

#[test]
fn one_apply_is_one_trace_until_everything_is_ready() {
    let Some(traced) = Traced::anywhere(&IMAGE, &TRUSTED).map(prepared) else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &["--namespace", traced.kubectl.namespace()]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    let trace = traced.traces.span("stamp Head", is_real).id.trace;
    let expected = parts::whole(&if traced.kubectl.cluster().is_embedded() { CONVERGENCE.to_owned() } else { dark() });
    traced.traces.becomes(&trace, &expected);
    let told = traced.kubectl.json("events --field-selector involvedObject.kind=Head");
    let about = told["items"].as_array().unwrap().iter().map(|event| &event["metadata"]["annotations"][TRACE_ID]);
    assert!(about.clone().count() >= 2 && about.clone().all(|id| *id == trace), "events name the trace: {told}");
    stop(operator);
    stop(webhook);
    clean_up(&traced);
    let traces = traced.end();
    traces.is(&trace, &expected);
    traces.tell_only(&OURS, &[&trace]);
}

#[test]
fn callers_that_the_api_server_does_not_trust_are_followed_by_links() {
    let Some(traced) = cluster(&[]) else { return };
    let webhook = webhook(&traced);
    let operator = operator(&traced, &[]);
    traced.kubectl.ok_with("apply -f -", &head("one", "first"));
    wait_ready(&traced, "one");
    stop(operator);
    stop(webhook);
    let traces = traced.end();
    let trace = traces.span("stamp Head", is_real).id.trace;
    // The webhook believes the writer's own context more than the trace that the API server began, and links that.
    // Where the same is applied again there is nothing to stamp, and no link.
    let again = STAMP_CHILD.replace("stamp", "? stamp");
    let beside = "        stamp ChildA [kubewake-webhook] server ~> HTTP POST\n";
    traces.is(&trace, &parts::whole(&CONVERGENCE.replace(STAMP_CHILD, &(again + beside))));
}
