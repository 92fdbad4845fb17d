//! The logs that an adversary writes, and what it does to their files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Write,
};

use super::follower::Node;

/// More logs than there are.
const MAX_LOGS: u64 = 8;

/// A file with lines of one log.
#[derive(Debug, Default)]
struct WrittenFile {
    lines: Vec<String>,
    /// Its name below the directory; none if it was destroyed.
    name: Option<String>,
    /// Whether the agent that runs has seen the file, so that it has it open.
    is_seen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogKind {
    Container,
    Plain,
}

/// One log: its files from the oldest to the one that is written.
struct WrittenLog {
    id: String,
    kind: LogKind,
    directory: String,
    restart: u32,
    rotations: u32,
    files: Vec<WrittenFile>,
    /// What the writer has open; it stays the same file when that is renamed.
    writer: Option<File>,
    /// The live file was renamed, and the runtime has not opened the next one.
    awaits_reopen: bool,
    next_line: u64,
    /// The rest of a line that was written in part, and that line.
    rest: String,
    open_line: Option<String>,
}

pub(super) struct WrittenLogs {
    random: fastrand::Rng,
    logs: Vec<WrittenLog>,
    written: BTreeMap<String, u64>,
    may_be_lost: BTreeSet<String>,
    /// Lines that begin in one file and end in the next.
    divided: BTreeSet<String>,
    has_unseen_losses: bool,
}

impl WrittenLogs {
    pub(super) fn new(node: &Node, mut random: fastrand::Rng) -> Self {
        let mut logs: Vec<WrittenLog> = (0..random.usize(1..4))
            .map(|index| WrittenLog::new(format!("c{index}"), LogKind::Container, format!("pods/ns_p{index}_uid/c")))
            .collect();
        for index in 0..random.usize(0..3) {
            logs.push(WrittenLog::new(format!("p{index}"), LogKind::Plain, "plain".to_owned()));
        }
        for directory in ["pods", "plain", "away"] {
            fs::create_dir_all(node.path(directory)).unwrap();
        }
        Self {
            random,
            logs,
            written: BTreeMap::new(),
            may_be_lost: BTreeSet::new(),
            divided: BTreeSet::new(),
            has_unseen_losses: false,
        }
    }

    /// The agent has looked at everything.
    pub(super) fn note_scan(&mut self) {
        for file in self.logs.iter_mut().flat_map(|log| &mut log.files) {
            file.is_seen |= file.name.is_some() && !file.lines.is_empty();
        }
    }

    /// Nobody has the files open any more: those that were destroyed are lost, as far as they were not delivered.
    pub(super) fn note_end(&mut self) {
        for file in self.logs.iter_mut().flat_map(|log| &mut log.files) {
            file.is_seen = false;
            if file.name.is_none() {
                self.may_be_lost.extend(file.lines.iter().cloned());
            }
        }
    }

    pub(super) fn lines_that_may_be_lost(&self) -> &BTreeSet<String> {
        &self.may_be_lost
    }

    /// Lines whose parts are not joined when files may have been missed between them.
    pub(super) fn divided_lines(&self) -> &BTreeSet<String> {
        &self.divided
    }

    /// Whether files were destroyed that the agent cannot know.
    pub(super) fn has_unseen_losses(&self) -> bool {
        self.has_unseen_losses
    }

    /// All lines with their lengths in bytes.
    pub(super) fn written_lines(&self) -> &BTreeMap<String, u64> {
        &self.written
    }

    /// Ends the lines that were written in part.
    pub(super) fn complete_lines(&mut self, node: &Node) {
        for index in 0..self.logs.len() {
            self.append(node, index, 1);
        }
    }

    /// Does something to some log.
    pub(super) fn disturb(&mut self, node: &Node) -> String {
        let index = self.random.usize(0..self.logs.len());
        let kind = self.logs[index].kind;
        let action = self.random.u8(0..24);
        let done = match (action, kind) {
            (0..=9, _) => {
                let count = self.random.usize(1..6);
                self.append(node, index, count);
                format!("append {count} lines")
            }
            (10..=14, LogKind::Container) => self.rotate_container(node, index),
            (15..=17, LogKind::Container) => self.compress_oldest(node, index),
            (18 | 19, LogKind::Container) => self.remove_oldest(node, index),
            (20, LogKind::Container) => self.restart_container(node, index),
            (21, LogKind::Container) => self.remove_container(node, index),
            (10..=12, LogKind::Plain) => self.rename_plain(node, index),
            (13 | 14, LogKind::Plain) => self.copy_and_truncate(node, index),
            (15, LogKind::Plain) => self.truncate(node, index),
            (16 | 17, LogKind::Plain) => self.remove_plain(node, index),
            (18, LogKind::Plain) => self.compress_oldest(node, index),
            (19, LogKind::Plain) => self.move_away(node, index),
            _ => {
                self.append_part(node, index);
                "append part of a line".to_owned()
            }
        };
        format!("{}: {done}", self.logs[index].id)
    }

    fn append(&mut self, node: &Node, index: usize, count: usize) {
        let log = &mut self.logs[index];
        let files = log.files.len();
        let mut text = std::mem::take(&mut log.rest);
        let open_line = log.open_line.take();
        let mut lines: Vec<String> = open_line.iter().cloned().collect();
        for _ in 0..count {
            let (line, full) = self.next_line(index);
            text.push_str(&full);
            lines.push(line);
        }
        self.write(node, index, &text, lines);
        if self.logs[index].files.len() > files {
            self.divided.extend(open_line);
        }
    }

    fn append_part(&mut self, node: &Node, index: usize) {
        if self.logs[index].open_line.is_some() {
            return self.append(node, index, 0);
        }
        let (line, full) = self.next_line(index);
        let cut = self.random.usize(20..full.len());
        self.write(node, index, &full[..cut], vec![line.clone()]);
        let log = &mut self.logs[index];
        log.rest = full[cut..].to_owned();
        log.open_line = Some(line);
    }

    fn complete_line(&mut self, node: &Node, index: usize) {
        if self.logs[index].open_line.is_some() {
            self.append(node, index, 0);
        }
    }

    fn next_line(&mut self, index: usize) -> (String, String) {
        let length = if self.random.u8(0..20) == 0 { 2_000 } else { self.random.usize(1..60) };
        let log = &mut self.logs[index];
        // As with the time of a real line, the beginning tells lines of all logs apart.
        let number = log.next_line * MAX_LOGS + index as u64;
        let line = format!("{number:020} {} {} end", log.id, "x".repeat(length));
        log.next_line += 1;
        let full = format!("{line}\n");
        self.written.insert(line.clone(), full.len() as u64);
        (line, full)
    }

    /// Writes to the file that is open, or begins the next one.
    fn write(&mut self, node: &Node, index: usize, text: &str, lines: Vec<String>) {
        let writes_late = self.random.bool();
        let log = &mut self.logs[index];
        if log.awaits_reopen && !writes_late {
            log.awaits_reopen = false;
            log.writer = None;
        }
        if log.writer.is_none() {
            let name = log.live_name();
            let path = node.path(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            log.writer = Some(File::options().append(true).create_new(true).open(path).unwrap());
            log.files.push(WrittenFile { name: Some(name), ..WrittenFile::default() });
        }
        log.writer.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        log.files.last_mut().unwrap().lines.extend(lines);
    }

    /// Renames the live file. The runtime opens the next one some time later.
    fn rotate_container(&mut self, node: &Node, index: usize) -> String {
        if self.random.bool() {
            self.complete_line(node, index);
        }
        let log = &mut self.logs[index];
        let Some(file) = log.files.last_mut().filter(|_| log.writer.is_some() && !log.awaits_reopen) else {
            return "nothing to rotate".to_owned();
        };
        log.rotations += 1;
        let Some(name) = file.name.clone() else { return "nothing to rotate".to_owned() };
        let rotated = format!("{name}.20231114-{:06}", log.rotations);
        node.rename(&name, &rotated);
        file.name = Some(rotated.clone());
        log.awaits_reopen = true;
        format!("rotate to {rotated}")
    }

    fn compress_oldest(&mut self, node: &Node, index: usize) -> String {
        let log = &mut self.logs[index];
        let live = log.live_name();
        let is_written = log.writer.is_some();
        let count = log.files.len();
        let found = log.files.iter_mut().enumerate().find(|(position, file)| {
            let is_live = is_written && position + 1 == count;
            let is_rotated = file.name.as_ref().is_some_and(|name| *name != live && name.len() > live.len());
            is_rotated && !is_live && !file.name.as_ref().unwrap().ends_with(".gz")
        });
        let Some((_, file)) = found else { return "nothing to compress".to_owned() };
        let name = file.name.clone().unwrap();
        let compressed = format!("{name}.gz");
        node.gzip(&name, &compressed);
        file.name = Some(compressed.clone());
        format!("compress to {compressed}")
    }

    fn remove_oldest(&mut self, node: &Node, index: usize) -> String {
        let log = &mut self.logs[index];
        let (is_written, count) = (log.writer.is_some(), log.files.len());
        let oldest = log.files.iter().position(|file| file.name.is_some());
        match oldest.filter(|oldest| !is_written || oldest + 1 < count) {
            Some(oldest) => {
                let name = self.destroy(index, oldest);
                node.remove(&name);
                format!("remove {name}")
            }
            None => "nothing to remove".to_owned(),
        }
    }

    /// The file has no name any more. Whoever has it open can read it.
    fn destroy(&mut self, index: usize, file: usize) -> String {
        let file = &mut self.logs[index].files[file];
        if !file.is_seen && !file.lines.is_empty() {
            self.may_be_lost.extend(file.lines.iter().cloned());
            self.has_unseen_losses = true;
        }
        file.name.take().unwrap_or_default()
    }

    fn restart_container(&mut self, node: &Node, index: usize) -> String {
        self.complete_line(node, index);
        let log = &mut self.logs[index];
        if log.writer.take().is_none() {
            return "no run to restart".to_owned();
        }
        log.awaits_reopen = false;
        log.restart += 1;
        format!("restart {}", log.restart)
    }

    fn remove_container(&mut self, node: &Node, index: usize) -> String {
        self.complete_line(node, index);
        for file in 0..self.logs[index].files.len() {
            if self.logs[index].files[file].name.is_some() {
                self.destroy(index, file);
            }
        }
        let log = &mut self.logs[index];
        let pod = node.path(&log.directory).parent().unwrap().to_path_buf();
        let _ = fs::remove_dir_all(pod);
        log.writer = None;
        log.awaits_reopen = false;
        log.restart = 0;
        log.directory = format!("{}_{}/c", log.directory.trim_end_matches("/c"), log.next_line);
        "remove pod".to_owned()
    }

    /// Ends the live file of a plain log, if it has one, and returns its name and a new one.
    fn end_plain_file(&mut self, node: &Node, index: usize) -> Option<(String, String)> {
        self.complete_line(node, index);
        let log = &mut self.logs[index];
        log.writer.as_ref()?;
        log.rotations += 1;
        let live = log.live_name();
        let next = format!("{live}.{}", log.rotations);
        Some((live, next))
    }

    fn rename_plain(&mut self, node: &Node, index: usize) -> String {
        let Some((live, next)) = self.end_plain_file(node, index) else { return "nothing to rename".to_owned() };
        node.rename(&live, &next);
        let log = &mut self.logs[index];
        log.writer = None;
        log.files.last_mut().unwrap().name = Some(next.clone());
        format!("rename to {next}")
    }

    fn move_away(&mut self, node: &Node, index: usize) -> String {
        let Some((live, _)) = self.end_plain_file(node, index) else { return "nothing to move".to_owned() };
        let log = &mut self.logs[index];
        node.rename(&live, &format!("away/{}.{}", log.id, log.rotations));
        log.writer = None;
        let last = log.files.len() - 1;
        self.destroy(index, last);
        "move away".to_owned()
    }

    fn copy_and_truncate(&mut self, node: &Node, index: usize) -> String {
        let Some((live, next)) = self.end_plain_file(node, index) else { return "nothing to copy".to_owned() };
        node.copy(&live, &next);
        node.truncate(&live, 0);
        let log = &mut self.logs[index];
        let copied = log.files.last_mut().unwrap();
        copied.name = Some(next.clone());
        // The agent has to find the copy.
        copied.is_seen = false;
        log.files.push(WrittenFile { name: Some(live), ..WrittenFile::default() });
        format!("copy to {next} and truncate")
    }

    fn truncate(&mut self, node: &Node, index: usize) -> String {
        let Some((live, _)) = self.end_plain_file(node, index) else { return "nothing to truncate".to_owned() };
        node.truncate(&live, 0);
        let log = &mut self.logs[index];
        let cut = log.files.last_mut().unwrap();
        cut.is_seen = false;
        let last = log.files.len() - 1;
        self.destroy(index, last);
        self.logs[index].files.push(WrittenFile { name: Some(live), ..WrittenFile::default() });
        "truncate".to_owned()
    }

    fn remove_plain(&mut self, node: &Node, index: usize) -> String {
        if self.random.bool() {
            return self.remove_oldest(node, index);
        }
        let Some((live, _)) = self.end_plain_file(node, index) else { return "nothing to remove".to_owned() };
        node.remove(&live);
        let log = &mut self.logs[index];
        log.writer = None;
        let last = log.files.len() - 1;
        self.destroy(index, last);
        format!("remove {live}")
    }
}

impl WrittenLog {
    fn new(id: String, kind: LogKind, directory: String) -> Self {
        Self {
            id,
            kind,
            directory,
            restart: 0,
            rotations: 0,
            files: Vec::new(),
            writer: None,
            awaits_reopen: false,
            next_line: 0,
            rest: String::new(),
            open_line: None,
        }
    }

    fn live_name(&self) -> String {
        match self.kind {
            LogKind::Container => format!("{}/{}.log", self.directory, self.restart),
            LogKind::Plain => format!("{}/{}.log", self.directory, self.id),
        }
    }
}
