use kubewake_api::{ConditionReason, ReferenceKind, SpecProblem, ValueReference};

use super::*;

fn case(problems: &[(&str, &str)]) -> ReviewedObject {
    let problem = |(path, message): &(&str, &str)| SpecProblem {
        path: (*path).to_owned(),
        reason: ConditionReason::SpecInvalid,
        message: (*message).to_owned(),
    };
    let problems = problems.iter().map(problem).collect();
    ReviewedObject { pipeline: None, problems, warnings: Vec::new(), access_targets: Default::default() }
}

fn secret(name: &str) -> access::AccessTarget {
    let kind = ReferenceKind::Secret;
    let namespace = "shop".to_owned();
    let name = name.to_owned();
    access::AccessTarget::from(&ValueReference { kind, namespace, name, key: "password".to_owned() })
}

#[test]
fn who_may_not_read_is_told_what_and_nothing_else_is_wrong() {
    let (verdict, outcome) = decision_for(&case(&[]), &[secret("backend")]);
    let ReviewDecision::Refuse { message, code, .. } = verdict else { panic!("it passes") };
    assert!(message.starts_with("you may not read Secret shop/backend:"), "{message}");
    assert_eq!((code, outcome), (403, ReviewOutcome::Forbidden));
}

#[test]
fn everything_that_is_wrong_is_in_one_refusal() {
    let problems = [("spec.output.otlp.endpoint", "has no port"), ("spec.sampling", "makes no sense")];
    let (verdict, outcome) = decision_for(&case(&problems), &[secret("one"), secret("two")]);
    let ReviewDecision::Refuse { message, code, .. } = verdict else { panic!("it passes") };
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "4 problems:");
    assert_eq!(lines[1], "- spec.output.otlp.endpoint: has no port");
    assert!(lines[4].contains("Secret shop/two"), "{message}");
    assert_eq!((code, outcome), (422, ReviewOutcome::Invalid));
}

#[test]
fn what_is_right_passes() {
    assert_eq!(decision_for(&case(&[]), &[]), (ReviewDecision::pass(), ReviewOutcome::Allowed));
}
