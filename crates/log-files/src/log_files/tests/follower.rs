//! A small receiver: it reads lines for each output, and commits them.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use crate::{
    DirectoryStore, FileProblem, GlobPattern, LogEvent, LogFiles, LogFilesSettings, LogPosition, LostRange, OutputId,
    OutputSet, PositionStore, ReadEnd, ReaderId, StartAt, StreamId,
    disk_space::{DiskSpace, SpaceOnDisk},
    log_files::care::WaitTimes,
    open_file::OpenFile,
};

/// A condition that is not met by then will not be met. No test waits so long when it passes.
const DEADLINE: Duration = Duration::from_secs(30);

/// A directory, and what a test does to it.
pub(super) struct Node {
    directory: TempDir,
    pub(super) disk: Arc<TestDisk>,
}

/// A file system whose space is set by a test.
pub(super) struct TestDisk(pub(super) Mutex<SpaceOnDisk>);

impl DiskSpace for TestDisk {
    fn space_of(&self, _: &OpenFile) -> Option<SpaceOnDisk> {
        Some(*self.0.lock().unwrap())
    }
}

impl Node {
    pub(super) fn new() -> Self {
        let space = SpaceOnDisk { total: 1 << 40, free: 1 << 40 };
        Self { directory: tempfile::tempdir().unwrap(), disk: Arc::new(TestDisk(Mutex::new(space))) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn append(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(super) fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).unwrap();
    }

    pub(super) fn truncate(&self, name: &str, size: u64) {
        File::options().write(true).open(self.path(name)).unwrap().set_len(size).unwrap();
    }

    /// As a kubelet does it: complete under another name first.
    pub(super) fn gzip(&self, from: &str, to: &str) {
        let temporary = self.path(&format!("{to}.tmp"));
        let mut encoder = GzEncoder::new(File::create(&temporary).unwrap(), Compression::fast());
        encoder.write_all(&fs::read(self.path(from)).unwrap()).unwrap();
        encoder.finish().unwrap();
        fs::rename(temporary, self.path(to)).unwrap();
        self.remove(from);
    }

    pub(super) fn settings(&self, include: &[&str]) -> LogFilesSettings {
        let pattern = |name: &&str| GlobPattern::parse(self.path(name).to_str().unwrap()).unwrap();
        let mut settings = LogFilesSettings::new(include.iter().map(pattern).collect());
        settings.start_at = StartAt::Beginning;
        settings.poll_interval = Duration::from_millis(20);
        settings.checkpoint_interval = Duration::from_millis(10);
        settings
    }

    pub(super) fn store(&self) -> Box<dyn PositionStore> {
        Box::new(DirectoryStore::new(self.path("state"), "test"))
    }

    pub(super) fn follow(&self, settings: LogFilesSettings) -> Follower {
        self.open(settings, None)
    }

    /// With positions that survive.
    pub(super) fn resume(&self, settings: LogFilesSettings) -> Follower {
        self.open(settings, Some(self.store()))
    }

    fn open(&self, settings: LogFilesSettings, store: Option<Box<dyn PositionStore>>) -> Follower {
        self.open_outputs(settings, &["out"], store)
    }

    pub(super) fn open_outputs(
        &self,
        settings: LogFilesSettings,
        outputs: &[&str],
        store: Option<Box<dyn PositionStore>>,
    ) -> Follower {
        let outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
        Follower::new(LogFiles::open_on(settings, outputs, store, self.disk.clone()).unwrap())
    }
}

struct LineReader {
    outputs: OutputSet,
    stream: StreamId,
    /// A line that goes on in the next generation.
    part: Vec<u8>,
    /// The generation that it goes on in, if no other one was lost between.
    next: Option<u64>,
}

/// What the readers of a receiver got.
pub(super) struct Follower {
    pub(super) files: LogFiles,
    readers: HashMap<ReaderId, LineReader>,
    /// Lines by the path of the file that they came from, in order.
    pub(super) lines: BTreeMap<PathBuf, Vec<String>>,
    /// All lines in order, by output.
    pub(super) delivered: HashMap<OutputId, Vec<(StreamId, LogPosition, String)>>,
    pub(super) lost: Vec<LostRange>,
    pub(super) problems: Vec<FileProblem>,
    pub(super) ended: Vec<StreamId>,
    /// Bytes by output.
    pub(super) bytes: HashMap<OutputId, u64>,
    /// Outputs whose backend answers.
    pub(super) answering: OutputSet,
    buffer: Vec<u8>,
}

impl Follower {
    pub(super) fn new(files: LogFiles) -> Self {
        let mut files = files;
        files.wait_times = WaitTimes {
            rotation: Duration::from_millis(20),
            reopen: Duration::from_millis(200),
            nameless: Duration::from_millis(50),
            superseded: Duration::from_millis(20),
            care: Duration::from_millis(5),
            deleted: Duration::from_millis(5),
        };
        let answering = (0..files.outputs().len()).map(|index| OutputId(index as u8)).collect();
        Self {
            files,
            readers: HashMap::new(),
            lines: BTreeMap::new(),
            delivered: HashMap::new(),
            lost: Vec::new(),
            problems: Vec::new(),
            ended: Vec::new(),
            bytes: HashMap::new(),
            answering,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// One round of a receiver: what has changed, and then all turns.
    pub(super) fn step(&mut self, timeout: Duration) {
        for event in self.files.poll(timeout) {
            self.handle(event);
        }
        let mut turns = 0;
        while let Some(turn) = self.files.next_turn() {
            self.take_turn(turn.reader);
            turns += 1;
            // A receiver looks at what has changed now and then.
            if turns > 64 {
                break;
            }
        }
    }

    /// Deals with what the last turns met.
    pub(super) fn handle_rest(&mut self) {
        for event in self.files.take_events() {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: LogEvent) {
        match event {
            LogEvent::Opened(stream) => self.open_readers(stream),
            LogEvent::Moved(_) => {}
            LogEvent::Ended(stream) => {
                self.readers.retain(|_, reader| reader.stream != stream);
                self.ended.push(stream);
            }
            LogEvent::Lost(lost) => self.lost.push(lost),
            LogEvent::Problem(problem) => self.problems.push(problem),
        }
    }

    fn open_readers(&mut self, stream: StreamId) {
        for (outputs, position) in self.files.reader_groups(stream) {
            for output in outputs.iter() {
                let outputs: OutputSet = [output].into_iter().collect();
                let reader = self.files.open_reader(stream, outputs, position).unwrap();
                if !self.answering.contains(output) {
                    self.files.pause(reader);
                }
                self.readers.insert(reader, LineReader { outputs, stream, part: Vec::new(), next: None });
            }
        }
    }

    /// The backend of an output answers, or hangs: its readers wait at what it has committed.
    pub(super) fn set_answering(&mut self, output: OutputId, answers: bool) {
        if answers {
            self.answering.insert(output);
        } else {
            self.answering.remove(output);
        }
        for (id, reader) in &self.readers {
            if reader.outputs.contains(output) {
                if answers { self.files.resume(*id) } else { self.files.pause(*id) }
            }
        }
    }

    fn take_turn(&mut self, id: ReaderId) {
        let outcome = self.files.read(id, &mut self.buffer);
        let Some(reader) = self.readers.get_mut(&id) else { return };
        let bytes = &self.buffer[..outcome.bytes];
        let is_end = matches!(outcome.end, ReadEnd::EndOfGeneration | ReadEnd::EndOfStream);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let consumed = if is_end || outcome.bytes == self.buffer.len() { outcome.bytes } else { whole };
        let mut position = outcome.position;
        if outcome.bytes > 0 && reader.next.take().is_some_and(|next| next != position.generation) {
            reader.part.clear();
        }
        if !matches!(outcome.end, ReadEnd::CaughtUp | ReadEnd::More) || !reader.part.is_empty() {
            reader.next = Some(position.generation + u64::from(outcome.end == ReadEnd::EndOfGeneration));
        }
        let path = self.files.stream(reader.stream).and_then(|stream| stream.path_at(position)).map(Path::to_path_buf);
        for piece in bytes[..consumed].split_inclusive(|byte| *byte == b'\n') {
            position.offset += piece.len() as u64;
            for output in reader.outputs.iter() {
                *self.bytes.entry(output).or_default() += piece.len() as u64;
            }
            reader.part.extend_from_slice(piece);
            if reader.part.last() == Some(&b'\n') || outcome.end == ReadEnd::EndOfStream {
                let line = String::from_utf8_lossy(&reader.part).trim_end().to_owned();
                reader.part.clear();
                if let Some(path) = &path {
                    self.lines.entry(path.clone()).or_default().push(line.clone());
                }
                for output in reader.outputs.iter() {
                    self.delivered.entry(output).or_default().push((reader.stream, position, line.clone()));
                }
            }
        }
        let bytes = bytes[..consumed].to_vec();
        self.files.advance(id, &bytes);
        let is_carried = !reader.part.is_empty();
        let position = self.files.reader_position(id).unwrap();
        let handle = self.files.handle();
        for output in reader.outputs.iter().filter(|_| !is_carried) {
            handle.commit(output, reader.stream, position);
        }
    }

    /// Runs until the condition holds.
    pub(super) fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !condition(self) {
            assert!(
                started.elapsed() < DEADLINE,
                "{what}: {:?}, lost {:?}, problems {:?}, statistics {:?}",
                self.lines,
                self.lost,
                self.problems,
                self.files.statistics()
            );
            self.step(Duration::from_millis(20));
        }
    }

    /// Runs until these lines have come of all files together, in this order within each file.
    pub(super) fn expect(&mut self, lines: &[&str]) {
        self.until(&format!("{lines:?}"), |follower| follower.all_lines().len() >= lines.len());
        // What should not come would come soon.
        for _ in 0..3 {
            self.step(Duration::from_millis(15));
        }
        let mut expected: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let mut found = self.all_lines();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    pub(super) fn expect_in_order(&mut self, lines: &[&str]) {
        self.expect(lines);
        assert_eq!(self.all_lines(), lines);
    }

    /// The lines of the first output, as they came.
    pub(super) fn all_lines(&self) -> Vec<String> {
        let delivered = self.delivered.get(&OutputId(0)).into_iter().flatten();
        delivered.map(|(_, _, line)| line.clone()).collect()
    }

    pub(super) fn lines_of(&self, path: &Path) -> Vec<String> {
        self.lines.get(path).cloned().unwrap_or_default()
    }

    /// Ends in an orderly way.
    pub(super) fn stop(self) {
        self.files.shut_down().unwrap();
    }
}
