# GET http://shop.example/admin → 403 in 16.743 ms · route admin · denied: deny rules[0] is true: request.headers["x-role"] != "admin" (request.headers["x-role"]: "guest")
curl --include \
  --connect-to '::127.0.0.1:3077' \
  --header 'user-agent: curl/7.88.1' \
  --header 'accept: */*' \
  --header 'x-role: guest' \
  --url 'http://shop.example/admin'
