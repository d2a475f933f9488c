//! Tests which work `outpost ps` lists for principals.

use outpost_testkit::{Server, TestUser};

use super::support::Directories;

async fn ps(server: &Server, user: &TestUser, token: &str, more: &[&str]) -> String {
    let args = [&["ps", "--on", &server.urls()[0]], more].concat();
    let listed = user.command().env("OUTPOST_TOKEN", token).run(&args).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    listed.stdout
}

#[tokio::test]
async fn admin_lists_work_of_others_with_all_and_with_their_names() {
    let directories = Directories::new();
    let (alice, root) = (
        directories.token("alice").await,
        directories.token("root").await,
    );
    let config =
        "max_session_ttl = \"unlimited\"\n[principals.root]\nscopes = [\"exec\", \"admin\"]\n";
    let server = directories.server(config).start().await;
    let user = TestUser::new(env!("CARGO_BIN_EXE_outpost"));
    let url = &server.urls()[0];
    let run = ["run", "--detach", "--on", url, "--", "sleep", "1000"];
    let started = user.command().env("OUTPOST_TOKEN", &alice).run(&run).await;
    let id = started.stdout.trim_end();
    assert_eq!(id.len(), 8, "{started:?}");
    assert!(ps(&server, &user, &alice, &[]).await.contains(id));
    let all = ps(&server, &user, &alice, &["--all"]).await;
    assert!(all.contains(id) && !all.contains("PRINCIPAL"), "{all}");
    assert_eq!(ps(&server, &user, &root, &[]).await, "");
    let all = ps(&server, &user, &root, &["--all"]).await;
    assert!(all.contains(&format!("{id}  alice      running")), "{all}");
    let all = ps(&server, &user, &root, &["--all", "--json"]).await;
    assert!(all.contains("\"principal\": \"alice\""), "{all}");
}
