//! Which lines are one stack trace: of Java, Kotlin, Scala, .NET, Node, Python, Go and Ruby.
//!
//! A line that may be the head of a trace is held until the next line of its stream shows whether it is one. Lines are
//! joined only where the next one has the form that the language's runtime gives it, so that indented text of any other
//! kind (JSON in several lines, YAML, tables) stays as it is.
//!
//! *Does not*: join a message of several lines, or the log line in front of a trace, with the trace.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::bytes::Regex;

/// How far a trace has been read: what its next line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceState {
    /// Behind the head or a frame of Java, .NET or Node.
    Frames,
    /// Within the properties of an error of Node, which follow its last frame in braces.
    Properties,
    /// Within a traceback of Python.
    Python,
    /// Behind the last line of a traceback, which names the exception.
    PythonEnd,
    /// Behind the sentence between two tracebacks.
    PythonLink,
    /// Behind the message of a panic of Go.
    GoPanic,
    /// Behind the head of a goroutine or the place of one of its frames.
    GoFunction,
    /// Behind the function of a frame of Go, whose place follows.
    GoPlace,
    /// Behind the head or a frame of Ruby.
    Ruby,
}

/// Texts that every head of a trace has. One search for all of them is fast.
static HEAD_MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"Exception|Error|Throwable|Traceback \(most recent|panic: |panic serving|fatal error: |\.rb:\d").ok()
});

impl TraceState {
    /// The state behind a line that may be the head of a trace.
    #[inline]
    pub(crate) fn begin(line: &[u8]) -> Option<Self> {
        // A frame has no head of its own, and a JSON object is a record.
        if matches!(line, [] | [b' ' | b'\t' | b'{', ..]) {
            return None;
        }
        let mark = HEAD_MARKS.as_ref()?.find(line)?;
        let line = line.trim_ascii_end();
        match mark.as_bytes() {
            b"Traceback (most recent" => line.ends_with(b"Traceback (most recent call last):").then_some(Self::Python),
            b"panic: " | b"fatal error: " => Some(Self::GoPanic),
            b"panic serving" => Some(Self::GoFunction),
            b"Exception" | b"Error" | b"Throwable" => {
                if line.ends_with(b"Traceback (most recent call last):") {
                    Some(Self::Python)
                } else if is_ruby_head(line) {
                    Some(Self::Ruby)
                } else {
                    Some(Self::Frames)
                }
            }
            _ => is_ruby_head(line).then_some(Self::Ruby),
        }
    }

    /// The state behind the next line, if the line continues the trace.
    pub(crate) fn next(self, line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        let text = line.trim_ascii_start();
        let is_indented = text.len() < line.len();
        match self {
            Self::Frames => next_of_frames(text, is_indented),
            Self::Properties => match line {
                b"}" => Some(Self::Frames),
                _ => is_indented.then_some(Self::Properties),
            },
            Self::Python if is_indented => Some(Self::Python),
            Self::Python => is_python_exception(line).then_some(Self::PythonEnd),
            Self::PythonEnd => is_python_link(line).then_some(Self::PythonLink),
            Self::PythonLink => (text == b"Traceback (most recent call last):").then_some(Self::Python),
            Self::GoPanic if line.starts_with(b"[signal ") || text.starts_with(b"panic: ") => Some(Self::GoPanic),
            Self::GoPanic => is_goroutine_head(line).then_some(Self::GoFunction),
            Self::GoFunction if is_goroutine_head(line) => Some(Self::GoFunction),
            Self::GoFunction => is_go_function(line).then_some(Self::GoPlace),
            Self::GoPlace => (is_indented && is_go_place(text)).then_some(Self::GoFunction),
            Self::Ruby => is_ruby_frame(text).then_some(Self::Ruby),
        }
    }

    /// Whether an empty line may be followed by more of the trace.
    pub(crate) fn may_have_blank(self) -> bool {
        matches!(self, Self::PythonEnd | Self::PythonLink | Self::GoPanic | Self::GoFunction)
    }
}

/// Behind a line of Java, .NET or Node: a frame, the cause, or a remark on frames left out.
fn next_of_frames(text: &[u8], is_indented: bool) -> Option<TraceState> {
    if let Some(frame) = text.strip_prefix(b"at ").filter(|_| is_indented) {
        return if !is_frame(frame) {
            None
        } else if frame.ends_with(b" {") {
            Some(TraceState::Properties)
        } else {
            Some(TraceState::Frames)
        };
    }
    let heads: [&[u8]; 3] = [b"Caused by: ", b"Suppressed: ", b"Wrapped by: "];
    let remarks: [&[u8]; 3] = [b"--- End of ", b"---> ", b"[CIRCULAR REFERENCE"];
    let is_head = heads.iter().any(|head| text.starts_with(head));
    let is_remark = remarks.iter().any(|remark| text.starts_with(remark));
    (is_head || is_remark || (is_indented && is_omission(text))).then_some(TraceState::Frames)
}

/// Whether what follows `at` is a frame: a call with its place in brackets, a place with a line, or `in` and a place.
fn is_frame(frame: &[u8]) -> bool {
    let frame = frame.strip_suffix(b" {").unwrap_or(frame);
    let has_call = memchr::memchr(b'(', frame).is_some_and(|open| open > 0 && memchr::memchr(b')', frame) > Some(open));
    has_call || is_place(frame)
}

/// Whether a text has no blanks and ends in a colon and a number, as the place `file:///app/a.js:10:7`.
fn is_place(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"async ").unwrap_or(text);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = text.len() - digits;
    digits > 0 && before > 1 && text.get(before - 1) == Some(&b':') && !text.contains(&b' ')
}

/// `... 12 more` and `... 12 common frames omitted`.
fn is_omission(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"... ") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest.get(digits..).unwrap_or_default();
    digits > 0 && (rest.starts_with(b" more") || rest.starts_with(b" common frames omitted"))
}

/// Whether a line names an exception of Python: `package.Name: message` or `Name`.
fn is_python_exception(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'.') || *byte >= 0x80;
    let behind = line.get(name.len()..).unwrap_or_default();
    !name.is_empty()
        && !name.first().is_some_and(u8::is_ascii_digit)
        && name.iter().all(is_part)
        && (behind.is_empty() || behind == b":" || behind.starts_with(b": "))
}

fn is_python_link(line: &[u8]) -> bool {
    line.starts_with(b"During handling of the above exception, another exception occurred:")
        || line.starts_with(b"The above exception was the direct cause of the following exception:")
}

/// `goroutine 1 [running]:`
fn is_goroutine_head(line: &[u8]) -> bool {
    line.starts_with(b"goroutine ") && line.ends_with(b"]:")
}

/// `main.(*Server).handle(0xc0000b4000, {0x1, 0x2})` and `created by main.main in goroutine 1`.
fn is_go_function(line: &[u8]) -> bool {
    if line.starts_with(b"created by ") {
        return true;
    }
    let name = line.split(|byte| matches!(*byte, b' ' | b'{')).next().unwrap_or_default();
    line.ends_with(b")") && memchr::memchr(b'(', name).is_some_and(|open| open > 0)
}

/// `/app/main.go:10 +0x1d`
fn is_go_place(text: &[u8]) -> bool {
    let place = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    is_place(place)
}

/// `/app/shop.rb:3:in 'sell': sold out (SoldOut)`
fn is_ruby_head(line: &[u8]) -> bool {
    memchr::memmem::find(line, b".rb:").is_some() && memchr::memmem::find(line, b":in ").is_some()
}

/// `from /app/shop.rb:7:in '<main>'`
fn is_ruby_frame(text: &[u8]) -> bool {
    let Some(place) = text.strip_prefix(b"from ") else { return false };
    memchr::memmem::find(place, b":in ").is_some_and(|end| place.get(..end).is_some_and(is_place))
}
