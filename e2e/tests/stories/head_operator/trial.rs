use super::{TRUSTED, cluster, head, operator, stop, wait_ready};
#[test]
fn trial() {
    let Some(traced) = cluster(&TRUSTED) else { return };
    let operator = operator(&traced, &[]);
    let t = "0af7651916cd43dd8448eb211c80319c";
    let annotation = format!("metadata: {{annotations: {{tracing.k8s.io/traceparent: 00-{t}-b7ad6b7169203331-01}}, name");
    traced.kubectl.ok_with("apply -f -", &head("one", "first").replace("metadata: {name", &annotation));
    wait_ready(&traced, "one");
    stop(operator);
    let traces = traced.end();
    println!("{}", traces.show(t));
    for span in traces.spans().in_trace(t).filter(|s| s.service == "head-operator") { println!("{span:#?}"); }
    for t in traces.spans().traces_of(&["head-operator"]) { println!("{}", traces.show(&t)); }
    panic!();
}
