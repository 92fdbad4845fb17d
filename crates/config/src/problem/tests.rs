use super::*;
use crate::yaml;

fn refuse(errors: Vec<DocumentFinding>, text: &MaskedText<'_>) -> DocumentErrors {
    super::into_errors(DocumentFindings { errors, more: 0, warnings: Vec::new(), public: Vec::new() }, text)
}

/// The words that these tests mark as public.
const PUBLIC: [&str; 7] = ["red", "wrong", "colour", "token", "X", "a:", "b:"];

fn public(text: &str) -> Vec<TextSpan> {
    let mut spans = Vec::new();
    for (index, content) in text.lines().enumerate() {
        for (at, word) in PUBLIC.iter().flat_map(|word| content.match_indices(word)) {
            spans.push(TextSpan { line: index + 1, column: at + 1, width: word.len(), last_line: index + 1 });
        }
    }
    spans
}

fn shown(text: &str, line: usize, column: usize, width: usize) -> String {
    let tree = yaml::parse(text, &mut Vec::new());
    let masked = match &tree {
        Some(tree) => MaskedText::new(text, tree, &public(text)),
        None => MaskedText::new_unparsed(text),
    };
    let span = TextSpan { line, column, width, last_line: line };
    let finding =
        DocumentFinding { path: "a::b".into(), span, message: "it is wrong".into(), help: Some("mend it".into()) };
    refuse(vec![finding], &masked).to_string()
}

#[test]
fn a_problem_shows_its_line_with_a_caret() {
    let expected = "\
error: it is wrong
 --> 2:6 a::b
  |
2 |   b: wrong
  |      ^^^^^
  = help: mend it

1 error";
    assert_eq!(shown("a:\n  b: wrong\n", 2, 6, 5), expected);
}

#[test]
fn a_problem_can_name_its_file() {
    let masked = MaskedText::new_unparsed("");
    let finding = DocumentFinding { path: String::new(), span: TextSpan::start(), message: "m".into(), help: None };
    let errors = refuse(vec![finding], &masked).in_file("config.yaml");
    assert_eq!(errors.to_string(), "error: m\n --> config.yaml:1:1\n\n1 error");
}

#[test]
fn secrets_are_masked_wherever_the_problem_is() {
    let cases = [
        ("{token: s3cret, colour: red}", 17),
        ("{colour: red, password: s3cret}", 2),
        ("{headers: {x: s3cret}, colour: red}", 24),
        ("{headers: [{name: x, value: s3cret}], colour: red}", 39),
        ("{client_secret: 's3cret', colour: red}", 27),
        ("{tokens: [s3cret, s3cret], colour: red}", 28),
        ("{my_api_key: s3cret, colour: red}", 23),
        ("{endpoint: 'http://user:s3cret@host', colour: red}", 39),
        ("key_pem: |\n  s3cret\n", 1),
        ("token: s3cret: s3cret", 1),
        ("token: [s3cret", 1),
        ("a: 1\npassword: >\ns3cret\n\t- s3cret", 1),
    ];
    for (text, column) in cases {
        for line in 1..=text.lines().count() {
            let message = shown(text, line, column, 6);
            assert!(!message.contains("s3cret"), "{text:?} line {line}:\n{message}");
        }
    }
}

#[test]
fn the_caret_moves_with_the_mask() {
    let message = shown("{token: very-long-secret, colour: red}", 1, 27, 6);
    let expected = "1 | {token: ***, colour: red}\n  |              ^^^^^^\n";
    assert!(message.contains(expected), "{message}");
    let message = shown("{token: very-long-secret}", 1, 9, 16);
    let expected = "1 | {token: ***}\n  |         ^^^\n";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_reference_is_shown() {
    let message = shown("{token: \"${env:TOKEN}\"}", 1, 2, 5);
    assert!(message.contains("${env:TOKEN}"), "{message}");
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let text = format!("{{{}X: 1{}}}", "b: , ".repeat(1000), ", c: ".repeat(1000));
    let message = shown(&text, 1, 5002, 1);
    assert!(message.len() < 600, "{}", message.len());
    let lines: Vec<&str> = message.lines().collect();
    let caret = lines[4].find('^').unwrap();
    assert_eq!(lines[3].as_bytes()[caret], b'X');
}

#[test]
fn a_masked_line_keeps_its_shape() {
    for (text, shown_as) in [
        (
            "{token: abc, secret: {x: [1, 'two'], y: z}, colour: red}",
            "{token: ***, ***: {***: [***, '***'], ***: ***}, colour: red}",
        ),
        ("\"a: b\": {endpoint: host}", "\"a: ***\": {***: ***}"),
        ("- [one, two]  # a remark", "- [***, ***]  ***"),
        (r#"- ['a["b"]', "c \"d\""]"#, r#"- ['***', "***"]"#),
    ] {
        let message = shown(text, 1, 1, 1);
        assert!(message.contains(&format!("1 | {shown_as}\n")), "{message}");
    }
}

#[test]
fn an_item_of_a_list_is_named_if_its_name_may_be_shown() {
    let text = "policies:\n- {name: red, type: x}\n- {name: s3cret}\nactions:\n- {action: wrong, key: X}\n";
    let tree = yaml::parse(text, &mut Vec::new()).unwrap();
    let masked = MaskedText::new(text, &tree, &public(text));
    assert_eq!(masked.display_path("policies::0::type"), "policies::0 (red)::type");
    assert_eq!(masked.display_path("policies::1"), "policies::1");
    assert_eq!(masked.display_path("actions::0::key"), "actions::0 (wrong X)::key");
    assert_eq!(masked.display_path("policies::7::absent"), "policies::7::absent");
    assert_eq!(masked.display_path(""), "");
}
