use super::*;

/// Problems of a document that consists of this block.
fn said(block: &str, stories: &str) -> Vec<String> {
    let problems = check_commands("docs/a.md", &parse(block), stories);
    problems.into_iter().map(|(_, problem)| problem).collect()
}

#[test]
fn a_command_is_typed_by_a_story_or_says_what_it_needs() {
    let block = "```sh\nkubectl get pods\n```\n";
    assert!(said(block, "commands(\"docs/a.md\")").is_empty());
    assert!(said(block, "commands(\"docs/b.md\")")[0].contains("no story runs"));
    assert!(said("```sh needs=docker\ndocker build .\n```\n", "").is_empty());
    assert_eq!(said("```sh needs=\ndocker build .\n```\n", "").len(), 1);
}

#[test]
fn a_command_does_not_hide_in_a_block_of_another_kind() {
    assert!(said("```text\nkubectl get pods\n```\n", "")[0].contains("must be in a block"));
    assert!(said("```text\n$ cargo build\n```\n", "")[0].contains("must be in a block"));
    assert_eq!(said("```\nanything\n```\n", "").len(), 1);
    assert_eq!(said("```bash\nls\n```\n", "").len(), 1);
    // The output of a program may contain commands.
    assert!(said("```text\nTry next:\n  kubectl get pods\n```\n", "").is_empty());
    assert!(said("```rust,no_run\nfn main() {}\n```\n", "").is_empty());
}

#[test]
fn blocks_in_lists_are_found_where_they_are() {
    let text = "- so:\n\n  ```sh\n  kubectl get pods\n  ```\n\nand on\n";
    let document = parse(text);
    assert_eq!(document.blocks, [CodeBlock { line: 3, info: "sh", lines: vec!["kubectl get pods"] }]);
    assert_eq!(document.prose.last(), Some(&(7, "and on")));
}

#[test]
fn the_folder_of_a_readme_names_it() {
    assert!(is_typed("examples/head-operator/README.md", "typed(\"examples/head-operator\")"));
    assert!(is_typed("README.md", "commands(\"README.md\")"));
    assert!(!is_typed("README.md", "commands(\"examples/README.md\")"));
}

#[test]
fn a_link_without_a_target_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.md");
    let text = "# A\n\n## What it is: `b_c`, and d\n";
    fs::write(&path, text).unwrap();
    for (target, there) in [
        ("a.md", true),
        ("b.md", false),
        ("#what-it-is-b_c-and-d", true),
        ("a.md#what-it-is-b_c-and-d", true),
        ("a.md#else", false),
        ("https://example.com/b.md", true),
    ] {
        let link = format!("see [this]({target}) and `[that]`");
        assert_eq!(check_links(&path, &parse(&link)).is_empty(), there, "{target}");
    }
}
