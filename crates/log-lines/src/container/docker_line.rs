//! A line of Docker's driver `json-file`: an object with the fields `log`, `stream`, `attrs` and `time`.

use crate::json::{JsonString, skip_blanks, skip_value};
use crate::record::OutputStream;
use crate::timestamp::TimestampReader;

/// A Docker line, borrowed from the file.
pub(super) struct DockerLine<'a> {
    pub(super) time: u64,
    pub(super) stream: Option<OutputStream>,
    /// What the container wrote, up to and with the end of its line, or a part of a long line.
    pub(super) content: JsonString<'a>,
    /// The JSON value of `attrs`: labels and environment that the daemon was told to add.
    pub(super) attributes: &'a [u8],
}

impl<'a> DockerLine<'a> {
    /// Reads a line, without its line end. `None` if it is not of the format: the fields `log` and `time` are needed.
    pub(super) fn read(line: &'a [u8], clock: &mut TimestampReader) -> Option<Self> {
        let [b'{', rest @ ..] = line else { return None };
        let mut rest = skip_blanks(rest);
        let mut time = None;
        let mut stream = None;
        let mut content = None;
        let mut attributes = &[][..];
        loop {
            let [b'"', key @ ..] = rest else { return None };
            let (key, tail) = JsonString::read(key)?;
            let [b':', tail @ ..] = skip_blanks(tail) else { return None };
            rest = skip_blanks(tail);
            match (key.raw, rest) {
                (b"log", [b'"', value @ ..]) => {
                    let (text, tail) = JsonString::read(value)?;
                    content = Some(text);
                    rest = tail;
                }
                (b"time", [b'"', value @ ..]) => {
                    let (text, tail) = JsonString::read(value)?;
                    time = clock.read(text.raw).filter(|(_, rest)| rest.is_empty()).map(|(time, _)| time);
                    rest = tail;
                }
                (key, _) => {
                    let (value, tail) = skip_value(rest)?;
                    match (key, value) {
                        (b"stream", b"\"stdout\"") => stream = Some(OutputStream::Stdout),
                        (b"stream", b"\"stderr\"") => stream = Some(OutputStream::Stderr),
                        (b"attrs", value) => attributes = value,
                        _ => {}
                    }
                    rest = tail;
                }
            }
            match skip_blanks(rest) {
                [b',', tail @ ..] => rest = skip_blanks(tail),
                [b'}', tail @ ..] if skip_blanks(tail).is_empty() => break,
                _ => return None,
            }
        }
        Some(Self { time: time?, stream, content: content?, attributes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(u64, Option<OutputStream>, String, String)> {
        let line = DockerLine::read(line.as_bytes(), &mut TimestampReader::default())?;
        let mut scratch = Vec::new();
        let content = String::from_utf8_lossy(line.content.resolve(&mut scratch)?).into_owned();
        Some((line.time, line.stream, content, String::from_utf8_lossy(line.attributes).into_owned()))
    }

    #[test]
    fn lines_of_the_driver_are_read() {
        let line = r#"{"log":"a \"b\"\n","stream":"stderr","attrs":{"tag":"t"},"time":"1970-01-01T00:00:00.5Z"}"#;
        let expected = (500_000_000, Some(OutputStream::Stderr), "a \"b\"\n".to_owned(), "{\"tag\":\"t\"}".to_owned());
        assert_eq!(read(line), Some(expected));
        let line = r#"{ "time" : "1970-01-01T00:00:01Z" , "log" : "x" }"#;
        assert_eq!(read(line), Some((1_000_000_000, None, "x".to_owned(), String::new())));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "{}",
            "{",
            r#"{"msg":"an application's own JSON"}"#,
            r#"{"log":"x","stream":"stdout"}"#,
            r#"{"log":"x","stream":"stdout","time":"yesterday"}"#,
            r#"{"log":"x","stream":"stdout","time":"1970-01-01T00:00:01Z"} and more"#,
            r#"{"log":"x","stream":"stdout","time":"1970-01-01T00:00:01Z""#,
            r#"{"log":1,"stream":"stdout","time":"1970-01-01T00:00:01Z"}"#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
