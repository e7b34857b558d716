# Code for execute_code: looks through the recorded pages for who built the fog organ, and answers.
import re

found = None
for address in list_pages():
    try:
        page = fetch(url=address, format="text")
    except ToolError as failure:
        print(f"{address}: {failure}")
        continue
    match = re.search(r"builder,\s+(\w+ \w+)", page["text"])
    if match and "organ" in page["title"].lower():
        found = match.group(1)
        break

if found:
    answer(text=found)
result = {"builder": found, "page": page["url"]}
