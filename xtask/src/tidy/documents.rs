//! Documents: links lead somewhere, and what a reader would type is typed by a story.
//!
//! A block is `sh` if a story types it, and `sh needs=SOMETHING` if no test machine has what it needs, such as a container runtime. Then a command
//! cannot stand in a document without anybody having decided which of the two it is.
//!
//! *Not done*: whether the story that names a document types all of it. Stories see to that themselves: what they do not know fails them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::root;

/// What blocks may be, beside commands.
const LANGUAGES: [&str; 5] = ["json", "rust", "text", "toml", "yaml"];
/// How a line begins that somebody would type.
const PROGRAMS: [&str; 11] =
    ["cargo", "curl", "docker", "export", "git", "helm", "istioctl", "kubeadm", "kubectl", "kubewake", "podman"];

/// A block between fences.
#[derive(Debug, PartialEq, Eq)]
struct Block<'a> {
    /// The line of its first fence, from 1.
    line: usize,
    /// What stands behind the fence.
    info: &'a str,
    lines: Vec<&'a str>,
}

/// A document, as far as the rules ask.
#[derive(Debug, Default)]
struct Document<'a> {
    blocks: Vec<Block<'a>>,
    /// The text outside of blocks, with the numbers of its lines.
    prose: Vec<(usize, &'a str)>,
}

/// All that is wrong with the documents of the tree, each with its place.
pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let (mut documents, mut stories) = (Vec::new(), Vec::new());
    below(&root(), "md", &mut documents)?;
    below(&root().join("e2e/tests"), "rs", &mut stories)?;
    let stories = stories.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?.join("\n");
    let mut wrong = Vec::new();
    for path in &documents {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (name, document) = (path.strip_prefix(root()).unwrap_or(path).display().to_string(), parse(&text));
        let problems = commands(&name, &document, &stories).into_iter().chain(links(path, &document));
        wrong.extend(problems.map(|(line, problem)| format!("{name}:{line}: {problem}")));
    }
    Ok(wrong)
}

/// Files with this extension, without what is built, installed or hidden.
pub(super) fn below(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            below(&path, extension, found)?;
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    Ok(())
}

fn parse(text: &str) -> Document<'_> {
    let (mut document, mut open) = (Document::default(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let bare = line.trim_start();
        match (open, bare.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(line.len() - bare.len());
                document.blocks.push(Block { line: number, info, lines: Vec::new() });
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

/// Commands that nobody types.
fn commands(name: &str, document: &Document<'_>, stories: &str) -> Vec<(usize, String)> {
    let typed = is_typed(name, stories);
    let judge = |block: &Block<'_>| {
        let (language, rest) = block.info.split_once(' ').unwrap_or((block.info, ""));
        match (language, rest) {
            ("sh", "") if typed => None,
            ("sh", "") => Some(format!("no story types these commands: let one name {name:?}, or write `sh needs=…`")),
            ("sh", needs) if needs.strip_prefix("needs=").is_some_and(|what| !what.is_empty()) => None,
            (other, "") if LANGUAGES.contains(&other.split(',').next().unwrap_or(other)) => {
                let command = block.lines.iter().find(|line| is_command(line))?;
                Some(format!("{command:?} is a command: it belongs into a block `sh`, or `sh needs=…`"))
            }
            _ => Some(format!("a block is `sh`, `sh needs=…`, or one of {}", LANGUAGES.join(", "))),
        }
    };
    document.blocks.iter().filter_map(|block| judge(block).map(|problem| (block.line, problem))).collect()
}

/// Whether a story names the document, or the folder whose README it is.
fn is_typed(name: &str, stories: &str) -> bool {
    let folder = name.strip_suffix("/README.md").unwrap_or(name);
    [name, folder].iter().any(|it| stories.contains(&format!("{it:?}")))
}

/// A line as one types it. What is indented is part of something that is shown.
fn is_command(line: &str) -> bool {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    line.split_once(' ').is_some_and(|(program, _)| PROGRAMS.contains(&program))
}

/// Links to files and headings that are not there. Those to other sites are not followed.
fn links(path: &Path, document: &Document<'_>) -> Vec<(usize, String)> {
    let all = document.prose.iter().flat_map(|(number, line)| targets(line).map(move |target| (*number, target)));
    let broken = all.filter(|(_, target)| !leads_somewhere(path, target));
    broken.map(|(number, target)| (number, format!("{target} leads nowhere"))).collect()
}

/// What the links of a line lead to.
fn targets(line: &str) -> impl Iterator<Item = &str> {
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

/// Whether a heading has this address, as GitHub makes it.
fn has_heading(text: &str, wanted: &str) -> bool {
    let document = parse(text);
    let headings = document.prose.iter().filter(|(_, line)| line.starts_with('#'));
    headings.into_iter().any(|(_, line)| address(line.trim_start_matches('#')) == wanted)
}

fn address(heading: &str) -> String {
    let letters = heading.trim().chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    letters.map(|it| if it == ' ' { '-' } else { it }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
