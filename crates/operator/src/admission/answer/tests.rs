use kubewake_api::{Problem, Reason, Reference, ReferenceKind};

use super::*;

fn case(problems: &[(&str, &str)]) -> Case {
    let problem = |(path, message): &(&str, &str)| Problem {
        path: (*path).to_owned(),
        reason: Reason::SpecInvalid,
        message: (*message).to_owned(),
    };
    let problems = problems.iter().map(problem).collect();
    Case { pipeline: None, problems, warnings: Vec::new(), named: Default::default() }
}

fn secret(name: &str) -> access::Object {
    let (kind, namespace, name) = (ReferenceKind::Secret, "shop".to_owned(), name.to_owned());
    access::Object::from(&Reference { kind, namespace, name, key: "password".to_owned() })
}

#[test]
fn who_may_not_read_is_told_what_and_nothing_else_is_wrong() {
    let (verdict, outcome) = verdict(&case(&[]), &[secret("backend")]);
    let Verdict::Refuse { message, code, .. } = verdict else { panic!("it passes") };
    assert!(message.starts_with("you may not read Secret shop/backend:"), "{message}");
    assert_eq!((code, outcome), (403, Outcome::Forbidden));
}

#[test]
fn everything_that_is_wrong_is_in_one_refusal() {
    let problems = [("spec.output.otlp.endpoint", "has no port"), ("spec.sampling", "makes no sense")];
    let (verdict, outcome) = verdict(&case(&problems), &[secret("one"), secret("two")]);
    let Verdict::Refuse { message, code, .. } = verdict else { panic!("it passes") };
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "4 things are wrong:");
    assert_eq!(lines[1], "- spec.output.otlp.endpoint: has no port");
    assert!(lines[4].contains("Secret shop/two"), "{message}");
    assert_eq!((code, outcome), (422, Outcome::Invalid));
}

#[test]
fn what_is_right_passes() {
    assert_eq!(verdict(&case(&[]), &[]), (Verdict::pass(), Outcome::Allowed));
}
