//! Documents: links must resolve, and a story must run the commands that a reader would type.
//!
//! A block is `sh` if a story runs it, and `sh needs=SOMETHING` if no test machine has what it needs, such as a
//! container runtime. So somebody decides for every command in a document which of the two it is.
//!
//! *Not done*: whether the story that names a document runs all of its commands. Stories verify that
//! themselves: they fail on a command that they do not know.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::workspace_root;

/// Languages of blocks other than commands.
const BLOCK_LANGUAGES: [&str; 5] = ["json", "rust", "text", "toml", "yaml"];
/// First words of lines that are commands.
const COMMAND_PROGRAMS: [&str; 11] =
    ["cargo", "curl", "docker", "export", "git", "helm", "istioctl", "kubeadm", "kubectl", "kubewake", "podman"];

#[derive(Debug, PartialEq, Eq)]
struct CodeBlock<'a> {
    /// Line number of the opening fence, from 1.
    line: usize,
    /// The info string after the fence.
    info: &'a str,
    lines: Vec<&'a str>,
}

/// The parts of a document that the rules concern.
#[derive(Debug, Default)]
struct MarkdownDocument<'a> {
    blocks: Vec<CodeBlock<'a>>,
    /// The lines outside of blocks, with their numbers.
    prose: Vec<(usize, &'a str)>,
}

/// All violations in the documents of the repository, with their positions.
pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let mut documents = Vec::new();
    let mut stories = Vec::new();
    find_files(&workspace_root(), "md", &mut documents)?;
    find_files(&workspace_root().join("e2e/tests"), "rs", &mut stories)?;
    let stories = stories.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?.join("\n");
    let mut wrong = Vec::new();
    for path in &documents {
        let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let (name, document) =
            (path.strip_prefix(workspace_root()).unwrap_or(path).display().to_string(), parse(&text));
        let problems = check_commands(&name, &document, &stories).into_iter().chain(check_links(path, &document));
        wrong.extend(problems.map(|(line, problem)| format!("{name}:{line}: {problem}")));
    }
    Ok(wrong)
}

/// Files with this extension, without those that are built, installed or hidden.
pub(super) fn find_files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            find_files(&path, extension, found)?;
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    Ok(())
}

fn parse(text: &str) -> MarkdownDocument<'_> {
    let mut document = MarkdownDocument::default();
    let mut open = None;
    for (number, line) in (1..).zip(text.lines()) {
        let bare = line.trim_start();
        match (open, bare.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(line.len() - bare.len());
                document.blocks.push(CodeBlock { line: number, info, lines: Vec::new() });
            }
            (None, None) => document.prose.push((number, line)),
            (Some(_), Some(_)) => open = None,
            (Some(indent), None) => {
                let line = line.get(indent..).unwrap_or_default();
                document.blocks.iter_mut().next_back().into_iter().for_each(|block| block.lines.push(line));
            }
        }
    }
    document
}

/// Commands that no story runs.
fn check_commands(name: &str, document: &MarkdownDocument<'_>, stories: &str) -> Vec<(usize, String)> {
    let typed = is_typed(name, stories);
    let judge = |block: &CodeBlock<'_>| {
        let (language, rest) = block.info.split_once(' ').unwrap_or((block.info, ""));
        match (language, rest) {
            ("sh", "") if typed => None,
            ("sh", "") => Some(format!("no story runs these commands: add {name:?} to a story, or write `sh needs=…`")),
            ("sh", needs) if needs.strip_prefix("needs=").is_some_and(|what| !what.is_empty()) => None,
            (other, "") if BLOCK_LANGUAGES.contains(&other.split(',').next().unwrap_or(other)) => {
                let command = block.lines.iter().find(|line| is_command(line))?;
                Some(format!("the command {command:?} must be in a block `sh` or `sh needs=…`"))
            }
            _ => Some(format!(
                "the language of a block must be `sh`, `sh needs=…`, or one of {}",
                BLOCK_LANGUAGES.join(", ")
            )),
        }
    };
    document.blocks.iter().filter_map(|block| judge(block).map(|problem| (block.line, problem))).collect()
}

/// Whether a story names the document, or the folder of a README.
fn is_typed(name: &str, stories: &str) -> bool {
    let folder = name.strip_suffix("/README.md").unwrap_or(name);
    [name, folder].iter().any(|it| stories.contains(&format!("{it:?}")))
}

/// Whether a line is a command. Indented lines are part of an output.
fn is_command(line: &str) -> bool {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    line.split_once(' ').is_some_and(|(program, _)| COMMAND_PROGRAMS.contains(&program))
}

/// Links to missing files and headings. Links to other sites are not followed.
fn check_links(path: &Path, document: &MarkdownDocument<'_>) -> Vec<(usize, String)> {
    let all = document.prose.iter().flat_map(|(number, line)| link_targets(line).map(move |target| (*number, target)));
    let broken = all.filter(|(_, target)| !leads_somewhere(path, target));
    broken.map(|(number, target)| (number, format!("the link {target} has no target"))).collect()
}

/// The targets of the links in a line.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn leads_somewhere(path: &Path, target: &str) -> bool {
    if target.contains("://") {
        return true;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let there = if file.is_empty() { path.to_owned() } else { path.parent().unwrap_or(path).join(file) };
    if heading.is_empty() {
        return there.exists();
    }
    fs::read_to_string(there).is_ok_and(|text| has_heading(&text, heading))
}

/// Whether a heading has this anchor, as GitHub generates it.
fn has_heading(text: &str, wanted: &str) -> bool {
    let document = parse(text);
    let headings = document.prose.iter().filter(|(_, line)| line.starts_with('#'));
    headings.into_iter().any(|(_, line)| heading_anchor(line.trim_start_matches('#')) == wanted)
}

fn heading_anchor(heading: &str) -> String {
    let letters = heading.trim().chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    letters.map(|it| if it == ' ' { '-' } else { it }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
