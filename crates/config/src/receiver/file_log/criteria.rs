//! `ordering_criteria`: which of the files that match are read.

use super::time_layout::{self, TimeLayout};
use crate::{
    RegexPattern,
    decode::{Cursor, DecodeReport, FieldReader, scalar, value},
    encode::WrittenSection,
};

/// `ordering_criteria`: the first files in an order are read, and no others.
#[derive(Clone, Debug, PartialEq)]
pub struct FileOrdering {
    /// `regex`: its groups are what files are sorted by. `None`: only times of modification count.
    pub regex: Option<RegexPattern>,
    /// `group_by`: files with the same text in the groups of this expression are a set of their own.
    pub group_by: Option<RegexPattern>,
    /// `top_n`: how many files are read of each set; `None`: all.
    pub top_n: Option<u32>,
    /// `sort_by`, applied one after the other. Never empty.
    pub sort_by: Vec<FileSort>,
    /// The section as it was read.
    pub(crate) written: WrittenSection,
}

/// One element of `sort_by`.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSort {
    pub kind: FileSortKind,
    pub ascending: bool,
}

/// `sort_type` of an element of `sort_by`.
#[derive(Clone, Debug, PartialEq)]
pub enum FileSortKind {
    /// `numeric`: by the whole number in a group.
    Numeric { group: String },
    /// `alphabetical`: by the text in a group.
    Alphabetical { group: String },
    /// `timestamp`: by the time in a group.
    Timestamp { group: String, layout: TimeLayout },
    /// `mtime`: by the time of modification.
    ModificationTime,
}

/// Reads `ordering_criteria`; `None` within if nothing is sorted by.
pub(super) fn ordering(at: &Cursor<'_>, report: &DecodeReport) -> Option<Option<FileOrdering>> {
    let mut fields = FieldReader::new(at, report);
    let regex = fields.find("regex").filter(|at| !is_empty(at)).and_then(|at| value::pattern(&at, report));
    let group_by = fields.find("group_by").filter(|at| !is_empty(at)).and_then(|at| value::pattern(&at, report));
    let top_n = fields.get("top_n", |at, report| scalar::integer_in_range(at, report, 0, i64::from(u32::MAX)));
    let sort_by: Vec<FileSort> = match fields.find("sort_by") {
        Some(at) => match at.items() {
            Some(items) => items.filter_map(|item| file_sort(&item, report, regex.as_ref())).collect(),
            None => scalar::wrong_type(&at, report, "a list", None).unwrap_or_default(),
        },
        None => Vec::new(),
    };
    let needs_regex = sort_by.iter().any(|sort| sort.kind != FileSortKind::ModificationTime);
    if needs_regex && regex.is_none() {
        fields.require("regex", "`regex` must be set when `sort_by` is", None);
    }
    let unsorted = sort_by.is_empty() && !fields.any_failed();
    if unsorted && (regex.is_some() || group_by.is_some() || top_n.is_some()) {
        let message = "`ordering_criteria` has no effect: there is nothing to sort by";
        report.warning(at, message, Some("add `sort_by`".into()));
    }
    fields.finish();
    // Without a number the Collector reads one file; zero means all.
    let top_n = top_n.map_or(Some(1), |count| u32::try_from(count).ok().filter(|count| *count > 0));
    Some((!sort_by.is_empty()).then_some(FileOrdering {
        regex,
        group_by,
        top_n,
        sort_by,
        written: WrittenSection::new(at),
    }))
}

fn file_sort(at: &Cursor<'_>, report: &DecodeReport, regex: Option<&RegexPattern>) -> Option<FileSort> {
    let mut fields = FieldReader::new(at, report);
    let known = [("numeric", 0), ("alphabetical", 1), ("timestamp", 2), ("mtime", 3)];
    let kind = fields.get("sort_type", |at, report| scalar::keyword(at, report, &known));
    let group = fields.text("regex_key");
    let ascending = fields.flag("ascending");
    // The page of the Collector's receiver calls it `format`.
    let layout = fields.find("layout");
    let format = fields.find("format");
    let location = fields.get("location", time_layout::location);
    if kind.is_none() {
        fields.require("sort_type", "`sort_type` is missing: numeric, alphabetical, timestamp or mtime", None);
    }
    if kind.is_some_and(|kind| kind != 3) {
        check_group(&fields, group.as_deref(), regex);
    }
    let layout = layout.or(format);
    if kind == Some(2) && layout.is_none() {
        fields.require("layout", "`layout` is missing: how the time is written, such as %Y%m%d", None);
    }
    fields.finish();
    let group = group.unwrap_or_default();
    let kind = match kind? {
        0 => FileSortKind::Numeric { group },
        1 => FileSortKind::Alphabetical { group },
        2 => {
            let layout = time_layout::strptime(&layout?, report)?.with_location(location);
            FileSortKind::Timestamp { group, layout }
        }
        _ => FileSortKind::ModificationTime,
    };
    Some(FileSort { kind, ascending })
}

/// Reports a group that the expression does not have.
fn check_group(fields: &FieldReader<'_, '_>, group: Option<&str>, regex: Option<&RegexPattern>) {
    match group {
        None => fields.require("regex_key", "`regex_key` is missing: the group to sort by", None),
        Some(group) => {
            let is_known = regex.is_none_or(|regex| regex.groups().any(|known| known == Some(group)));
            if !is_known {
                let at = fields.cursor_at("regex_key");
                fields.report.error(&at, format!("`regex` has no group named {}", at.quote(group)), None);
            }
        }
    }
}

fn is_empty(at: &Cursor<'_>) -> bool {
    matches!(&at.node.value, crate::yaml::NodeValue::String(text) if text.is_empty())
}
