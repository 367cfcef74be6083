/** What the tests use of the package, which comes without types. */
declare module "fengari" {
  interface State {
    readonly state: unique symbol;
  }
  type LuaString = Uint8Array;
  type Library = (state: State) => number;

  export function to_luastring(text: string): LuaString;
  export const lauxlib: {
    luaL_newstate(): State;
    luaL_requiref(state: State, name: LuaString, open: Library, global: boolean): void;
    luaL_loadstring(state: State, source: LuaString): number;
  };
  export const lualib: { readonly luaopen_base: Library; readonly luaopen_table: Library };
  export const lua: {
    readonly LUA_OK: number;
    lua_pcall(state: State, args: number, results: number, handler: number): number;
    lua_tojsstring(state: State, index: number): string;
  };
}
