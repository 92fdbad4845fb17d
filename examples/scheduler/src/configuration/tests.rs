use serde_json::json;

use super::*;

fn document(spec: serde_json::Value) -> ConfigurationDocument {
    ConfigurationDocument::from_spec(&serde_json::from_value(spec).unwrap())
}

fn problems(spec: serde_json::Value) -> Vec<String> {
    let checked = document(spec).resolve();
    checked.err().unwrap_or_default().iter().map(ConfigurationProblem::to_string).collect()
}

#[test]
fn a_good_one_becomes_plugins() {
    let asked = json!({
        "filters": ["TaintToleration", "NodeResourcesFit"],
        "scores": [{ "name": "LeastAllocated" }, { "name": "NodeLabel", "weight": 3, "label": "disk=ssd" }],
    });
    let document = document(asked);
    let read = ConfigurationDocument::parse(&document.to_json().unwrap()).ok().unwrap();
    assert_eq!(read.revision, document.revision);
    assert_eq!(read.filters.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["TaintToleration", "NodeResourcesFit"]);
    let scores: Vec<_> = read.scores.iter().map(|score| (score.name, score.weight)).collect();
    assert_eq!(scores, [("LeastAllocated", 1), ("NodeLabel", 3)]);
    assert!(read.scores.iter().all(|score| score.plugin().is_some()));
    assert_eq!((read.backoff.initial, read.backoff.max), (Duration::from_secs(1), Duration::from_secs(10)));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let wrong = json!({
        "filters": ["NodeAffinity", "Magic", "NodeAffinity"],
        "scores": [
            { "name": "Luck" }, { "name": "LeastAllocated", "weight": 0 }, { "name": "NodeLabel" },
            { "name": "NodeLabel", "label": "a b" }, { "name": "MostAllocated", "label": "x" },
        ],
        "backoff": { "initialSeconds": 20 },
    });
    assert_eq!(
        problems(wrong),
        [
            "filters[1]: unknown filter plugin \"Magic\"; known plugins are NodeUnschedulable, TaintToleration, NodeAffinity, NodeResourcesFit",
            "filters[2]: NodeAffinity is listed twice",
            "scores[0].name: unknown score plugin \"Luck\"; known plugins are LeastAllocated, MostAllocated, BalancedAllocation, NodeAffinity, TaintToleration, NodeLabel",
            "scores[1].weight: 0 is not from 1 to 100",
            "scores[2].label: NodeLabel needs a label, such as disk=ssd",
            "scores[3].label: \"a b\" is not a label key: write for example `disk=ssd` or `example.com/disk=ssd`",
            "scores[4].label: MostAllocated takes no label, only NodeLabel does",
            "backoff: initialSeconds 20 is more than maxSeconds 10",
        ]
    );
}

#[test]
fn a_revision_stands_for_the_content() {
    let one = || document(json!({ "filters": ["NodeAffinity"] }));
    let other = document(json!({ "filters": ["NodeAffinity"], "scores": [{ "name": "LeastAllocated" }] }));
    assert_eq!(one().revision, one().revision);
    assert_ne!(one().revision, other.revision);
}

#[test]
fn what_somebody_changed_or_added_by_hand_is_refused() {
    let text = document(json!({ "scores": [{ "name": "LeastAllocated" }] })).to_json().unwrap();
    let refused = |text: &str| ConfigurationDocument::parse(text).err().unwrap().to_string();
    assert!(refused(&text.replace("Least", "Most")).contains("only the operator may write the configuration"));
    assert!(refused(&text.replace("\"filters\"", "\"wings\": 2, \"filters\"")).contains("unknown field `wings`"));
    assert!(refused("{").contains("failed to parse the configuration"));
    assert_eq!(ConfigurationDocument::claimed_revision("{"), "unknown");
}
