//! What a decoder hands on: one record of a log, borrowed from the bytes that were read, and who takes it.

/// A position in a log: a generation of its file, and a byte in it.
///
/// Positions of one log are ordered: a later generation is behind every byte of an earlier one. The numbers are those
/// of the caller, who gives the position of each chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinePosition {
    /// Number of the generation, which grows with every rotation.
    pub generation: u64,
    /// Bytes before the position in the uncompressed content of the generation.
    pub offset: u64,
}

impl LinePosition {
    /// The position that many bytes further in the same generation.
    pub fn advanced_by(self, bytes: usize) -> Self {
        Self { offset: self.offset.saturating_add(bytes as u64), ..self }
    }
}

/// The stream that a container wrote a line to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

impl OutputStream {
    /// The value of the attribute `log.iostream`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// How the bytes of a body become the body of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyKind {
    /// A string. What is no UTF-8 becomes U+FFFD.
    #[default]
    Text,
    /// A string with the bytes as they are, valid or not.
    RawText,
    /// Bytes.
    Bytes,
}

/// One record of a log. Its body is borrowed from the chunk, or from the parts of it that a decoder has joined.
#[derive(Clone, Copy, Debug)]
pub struct LineRecord<'a> {
    /// Where the first byte of its first line is.
    pub start: LinePosition,
    /// Which record of the log it is, from 1.
    pub number: u64,
    /// Time that the line states, in nanoseconds since 1970; 0 if it states none.
    pub time: u64,
    /// Time at which the line was read, in nanoseconds since 1970.
    pub observed: u64,
    /// The container's stream; `None` if the line does not say.
    pub stream: Option<OutputStream>,
    /// The tags of a CRI line, such as `F`, of a joined line those of its first part; empty for other lines.
    pub tags: &'a [u8],
    /// The JSON value of the field `attrs` of a Docker line; empty for other lines.
    pub docker_attributes: &'a [u8],
    /// The body.
    pub body: &'a [u8],
    /// What kind of value the body becomes.
    pub body_kind: BodyKind,
}

/// Takes the records that a decoder finds. [`RequestBuilder`](crate::RequestBuilder) makes them OTLP.
pub trait RecordSink {
    /// Whether it takes another record. A decoder asks before each line, and stops in front of the line if not.
    fn has_room(&self) -> bool;

    /// Takes a record. A decoder may hand on a few more records than there is room for, where one line ends several.
    fn put(&mut self, record: &LineRecord<'_>);

    /// Says that records with about that many bytes of lines follow.
    fn expect_bytes(&mut self, _bytes: usize) {}
}
