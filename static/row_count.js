/** How many rows a statement finds beyond those that are shown. */

import { request } from "./api.js";

/** Resolves to the number of rows of `sql` in `database`; null when they can't be counted. */
export async function rowCount(sql, database) {
  const body = { sql: `SELECT count(*) FROM (\n${sql.replace(/[;\s]+$/, "")}\n) AS all_rows`, database };
  try {
    const { query_result: result } = await request("sql/run", { method: "POST", body });
    return result.rows[0][0];
  } catch {
    return null;
  }
}
