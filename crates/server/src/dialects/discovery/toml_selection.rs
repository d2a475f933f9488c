//! Selects keys of a TOML file. Pure.

use toml::{Table, Value};

/// Renders the selected keys of a table, in the order of the file; `None` if it has none of them. If
/// only the tables around a key exist, they are rendered empty.
pub(super) fn select(table: &Table, paths: &[Vec<String>]) -> Option<String> {
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let selected = filter(table, &paths);
    if selected.is_empty() {
        return None;
    }
    toml::to_string(&selected).ok()
}

fn filter(table: &Table, paths: &[&[String]]) -> Table {
    let mut selected = Table::new();
    for (key, value) in table {
        let below = paths.iter().filter_map(|path| match path.split_first() {
            Some((first, rest)) if first == key => Some(rest),
            _ => None,
        });
        let below: Vec<&[String]> = below.collect();
        let is_whole = below.iter().any(|path| path.is_empty());
        let value = match value {
            _ if below.is_empty() => continue,
            value if is_whole => value.clone(),
            Value::Table(inner) => Value::Table(filter(inner, &below)),
            _ => continue,
        };
        selected.insert(key.clone(), value);
    }
    selected
}

/// Parses a file. The error has the position, as `1:5: key with no value, expected `=``.
pub(super) fn parse(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let before = before.unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars();
        format!("{line}:{}: {}", column.count() + 1, error.message())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(text: &str, paths: &[&[&str]]) -> Option<String> {
        let paths = paths
            .iter()
            .map(|path| path.iter().map(|key| (*key).to_owned()));
        let paths: Vec<Vec<String>> = paths.map(Iterator::collect).collect();
        select(&parse(text).unwrap(), &paths)
    }

    #[test]
    fn only_selected_keys_are_rendered() {
        let text = "model = 'm'\n[mcp_servers.a]\ncommand = 'echo'\n[mcp_servers.a.env]\nT = 's'\n";
        let servers = "[mcp_servers.a]\ncommand = \"echo\"\n\n[mcp_servers.a.env]\nT = \"s\"\n";
        assert_eq!(
            selected(text, &[&["mcp_servers"]]).as_deref(),
            Some(servers)
        );
        assert_eq!(
            selected(text, &[&["mcp_servers", "b"]]).as_deref(),
            Some("[mcp_servers]\n")
        );
        assert_eq!(selected(text, &[&["nothing"], &["model", "x"]]), None);
        assert_eq!(selected(text, &[]), None);
    }

    #[test]
    fn keys_have_the_order_of_the_file() {
        let text = "[b]\nz = 1\na = 2\n[a.c]\nk = 1\n";
        let whole = "[b]\nz = 1\na = 2\n\n[a.c]\nk = 1\n";
        assert_eq!(selected(text, &[&["a"], &["b"]]).as_deref(), Some(whole));
    }

    #[test]
    fn syntax_errors_have_a_position() {
        let error = parse("\nkey\n").unwrap_err();
        assert!(error.starts_with("2:4: key with no value"), "{error}");
    }
}
