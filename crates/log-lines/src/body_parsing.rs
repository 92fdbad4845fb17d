//! What is read from the text of a line.

/// Which parts of a line that is a JSON object become fields of its record. A line of anything else keeps its text as
/// its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyParsing {
    /// Members become attributes. Without it nothing else of this happens.
    pub parses_json: bool,
    /// `msg` or else `message` becomes the body. Where neither is there, the line remains the body.
    pub moves_message: bool,
    /// `log.level`, `level`, `severity`, `severity_text` or `lvl` becomes the severity.
    pub moves_severity: bool,
    /// `trace_id`, `span_id`, `trace_flags` and `traceparent`, and other spellings of them, become the ids.
    pub moves_trace_context: bool,
    /// A line whose body was replaced by its message is kept as the attribute `log.original`.
    pub keeps_original: bool,
}

impl BodyParsing {
    /// Lines stay as they are.
    pub const OFF: Self = Self {
        parses_json: false,
        moves_message: false,
        moves_severity: false,
        moves_trace_context: false,
        keeps_original: false,
    };

    /// All parts, with the original line.
    pub const ALL: Self = Self {
        parses_json: true,
        moves_message: true,
        moves_severity: true,
        moves_trace_context: true,
        keeps_original: true,
    };
}

impl Default for BodyParsing {
    fn default() -> Self {
        Self::OFF
    }
}

/// What was counted while records were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseCounts {
    /// Lines whose JSON became attributes.
    pub parsed_bodies: u64,
    /// Lines in braces that are no JSON object, or one that is too deep or too large. They stay as they are.
    pub unparsed_bodies: u64,
    /// Members that were dropped because the agent sets an attribute with their key. Their records count them, too.
    pub dropped_attributes: u64,
}
