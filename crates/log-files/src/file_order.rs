//! Which of the files that match are read, by parts of their names: the Collector's `ordering_criteria`.
//!
//! *Guarantees*: of each group, the first `top_n` files by the sort rules remain. A file whose path the expression
//! does not match is left out, as in the Collector.
//!
//! *Does not*: read anything but paths and modification times.

use std::{
    cmp::Ordering,
    collections::HashMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use regex::Regex;

/// Which files remain.
#[derive(Debug, Clone)]
pub struct OrderingCriteria {
    /// Matched against the path; its named groups are what the rules sort by. Without an expression, only rules by
    /// modification time apply.
    pub regex: Option<Regex>,
    /// Files for whose paths the first group of this expression has an equal value compete with each other; without it,
    /// all do.
    pub group_by: Option<Regex>,
    /// How many files remain of each group.
    pub top_n: usize,
    /// Each rule sorts anew, so that the last one that tells two files apart decides.
    pub sort_by: Vec<SortRule>,
}

/// One rule of an order.
#[derive(Debug, Clone)]
pub struct SortRule {
    pub kind: SortKind,
    pub ascending: bool,
}

/// What files are compared by. A key is the name of a group of the expression.
#[derive(Debug, Clone)]
pub enum SortKind {
    Numeric {
        key: String,
    },
    Alphabetical {
        key: String,
    },
    /// By a date in the name, in the layout of `strptime`. All files of one rule are of one time zone, which therefore
    /// does not matter.
    Timestamp {
        key: String,
        layout: String,
    },
    ModificationTime,
}

/// A value to sort by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue {
    Number(i128),
    Text(String),
    Time(i64),
    Modified(SystemTime),
}

/// A file, and its value for each rule.
type RankedFile<'a> = (Vec<SortValue>, &'a PathBuf);

impl OrderingCriteria {
    /// The files that remain. `modified` is asked only for rules by modification time.
    pub fn select(&self, paths: &[PathBuf], modified: impl Fn(&Path) -> Option<SystemTime>) -> Vec<PathBuf> {
        let mut groups: HashMap<String, Vec<RankedFile<'_>>> = HashMap::new();
        for path in paths {
            let text = path.to_string_lossy();
            let captures = match &self.regex {
                Some(regex) => match regex.captures(&text) {
                    Some(captures) => Some(captures),
                    None => continue,
                },
                None => None,
            };
            let value_of = |key: &str| captures.as_ref().and_then(|found| found.name(key)).map(|found| found.as_str());
            let values = self.sort_by.iter().map(|rule| rule.kind.read_value(path, &value_of, &modified));
            let Some(values) = values.collect::<Option<Vec<SortValue>>>() else { continue };
            let group = match &self.group_by {
                None => String::new(),
                Some(regex) => match regex.captures(&text).and_then(|found| found.get(1)) {
                    Some(group) => group.as_str().to_owned(),
                    None => continue,
                },
            };
            groups.entry(group).or_default().push((values, path));
        }
        let mut selected = Vec::new();
        for mut files in groups.into_values() {
            files.sort_by(|(left, left_path), (right, right_path)| {
                self.compare(left, right).then_with(|| left_path.cmp(right_path))
            });
            selected.extend(files.into_iter().take(self.top_n).map(|(_, path)| path.clone()));
        }
        selected
    }

    fn compare(&self, left: &[SortValue], right: &[SortValue]) -> Ordering {
        let pairs = left.iter().zip(right).zip(&self.sort_by).rev();
        pairs.fold(Ordering::Equal, |order, ((left, right), rule)| {
            order.then_with(|| if rule.ascending { left.cmp(right) } else { right.cmp(left) })
        })
    }
}

impl SortKind {
    fn read_value<'a>(
        &self,
        path: &Path,
        value_of: &impl Fn(&str) -> Option<&'a str>,
        modified: &impl Fn(&Path) -> Option<SystemTime>,
    ) -> Option<SortValue> {
        match self {
            Self::Numeric { key } => value_of(key)?.parse().ok().map(SortValue::Number),
            Self::Alphabetical { key } => value_of(key).map(|text| SortValue::Text(text.to_owned())),
            Self::Timestamp { key, layout } => {
                let parsed = jiff::fmt::strtime::parse(layout, value_of(key)?).ok()?;
                let moment = parsed.to_datetime().or_else(|_| parsed.to_date().map(|date| date.at(0, 0, 0, 0))).ok()?;
                let start = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
                Some(SortValue::Time(moment.duration_since(start).as_secs()))
            }
            Self::ModificationTime => modified(path).map(SortValue::Modified),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(criteria: &OrderingCriteria, names: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = names.iter().map(|name| Path::new("/d").join(name)).collect();
        let selected = criteria.select(&paths, |_| None);
        selected.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn criteria(regex: &str, top_n: usize, kind: SortKind, ascending: bool) -> OrderingCriteria {
        let sort_by = vec![SortRule { kind, ascending }];
        OrderingCriteria { regex: Some(Regex::new(regex).unwrap()), group_by: None, top_n, sort_by }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let by_number = criteria(r"f-(?P<n>\d+)\.log", 1, SortKind::Numeric { key: "n".into() }, false);
        assert_eq!(select(&by_number, &["f-2.log", "f-10.log", "f-9.log", "other"]), ["f-10.log"]);
    }

    #[test]
    fn several_files_remain_in_alphabetical_order() {
        let by_name = criteria(r"f-(?P<n>.+)\.log", 2, SortKind::Alphabetical { key: "n".into() }, true);
        assert_eq!(select(&by_name, &["f-c.log", "f-a.log", "f-b.log"]), ["f-a.log", "f-b.log"]);
    }

    #[test]
    fn dates_in_names_are_compared_by_time() {
        let kind = SortKind::Timestamp { key: "d".into(), layout: "%d%m%Y".into() };
        let by_date = criteria(r"f-(?P<d>\d{8})\.log", 1, kind, false);
        assert_eq!(select(&by_date, &["f-31122023.log", "f-02012024.log"]), ["f-02012024.log"]);
    }

    #[test]
    fn last_rule_decides_before_those_in_front_of_it() {
        let mut by_two = criteria(r"f-(?P<n>\d)-(?P<m>\d)", 2, SortKind::Numeric { key: "n".into() }, true);
        by_two.sort_by.push(SortRule { kind: SortKind::Numeric { key: "m".into() }, ascending: false });
        assert_eq!(select(&by_two, &["f-2-8", "f-1-7", "f-3-8", "f-1-8"]), ["f-1-8", "f-2-8"]);
    }

    #[test]
    fn file_without_a_value_is_left_out() {
        let by_number = criteria(r"f-(?P<n>.+)\.log", 9, SortKind::Numeric { key: "n".into() }, true);
        assert_eq!(select(&by_number, &["f-2.log", "f-x.log", "f-1.log"]), ["f-1.log", "f-2.log"]);
    }

    #[test]
    fn each_group_keeps_its_first() {
        let mut grouped = criteria(r"(?P<g>[ab])-(?P<n>\d+)", 1, SortKind::Numeric { key: "n".into() }, false);
        grouped.group_by = Some(Regex::new("/([ab])-").unwrap());
        let mut names = select(&grouped, &["a-1", "a-2", "b-3", "b-1", "b-x", "xa-9"]);
        names.sort();
        assert_eq!(names, ["a-2", "b-3"]);
    }
}
