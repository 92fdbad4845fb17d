//! Traces as texts, written short: what is the same in every story has a name, and paths have one for what they begin with.

/// What a line `<name>` stands for. Where something may happen once or more often, no number is said.
const PARTS: [(&str, &str); 7] = [
    (
        "deployment",
        "apply Deployment [head-operator] producer
  PATCH APPS/deployments/{:name} [head-operator] client
    PATCH APPS/deployments/{:name} [apiserver] server",
    ),
    (
        "status of ChildA",
        "status ChildA [head-operator] internal
  PATCH DEMO/childas/{:name}/status [head-operator] client
    PATCH DEMO/childas/{:name}/status [apiserver] server",
    ),
    (
        "status of Head",
        "status Head [head-operator] internal
  PATCH DEMO/heads/{:name}/status [head-operator] client
    PATCH DEMO/heads/{:name}/status [apiserver] server",
    ),
    (
        "list",
        "GET DEMO/childas [head-operator] client
  GET DEMO/childas [apiserver] server",
    ),
    (
        "events",
        "<event>
<event again>",
    ),
    (
        "event",
        "POST EVENTS/events [head-operator] client
  POST EVENTS/events [apiserver] server",
    ),
    (
        // The same event again is counted in the old one.
        "event again",
        "? PATCH EVENTS/events/{:name} [head-operator] client
  ? PATCH EVENTS/events/{:name} [apiserver] server",
    ),
];

const PATHS: [(&str, &str); 3] =
    [("DEMO/", "demo.kubewake.io/v1alpha1"), ("APPS/", "apps/v1"), ("EVENTS/", "events.k8s.io/v1")];

/// The whole text.
pub(in super::super) fn whole(short: &str) -> String {
    let lines = PARTS.iter().fold(short.to_owned(), |text, (name, part)| {
        let line = |line: &str| match line.trim_start() {
            found if found == format!("<{name}>") => indented(part, line.len() - found.len()),
            _ => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    });
    PATHS.iter().fold(lines, |text, (short, group)| {
        text.replace(&format!(" {short}"), &format!(" /apis/{group}/namespaces/{{:namespace}}/"))
    })
}

fn indented(part: &str, depth: usize) -> String {
    part.lines().map(|line| format!("{}{line}", " ".repeat(depth))).collect::<Vec<_>>().join("\n")
}
